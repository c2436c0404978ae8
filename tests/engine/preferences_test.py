"""Queries with a preference as they come, change, pause and go, and what else happens to their streams."""

from __future__ import annotations

from typing import Any

import pytest

from engine.engine import Engine
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import (
    Alter,
    DropSummary,
    Register,
    Registration,
    StepResult,
)
from tests.capacities import small_engine, small_restored
from tests.differential.agreement import plain_rows
from tests.engine.preferences import ALL, JOIN, PREFERRED, SELECTED, SUMMARY, Feed
from tests.memory_state import MemoryState
from tests.strategies import Values, batch_of
from tureen.errors import InstantOutOfRange, NotSupported, OptionRefused, QueryPaused


def begun(sql: str = PREFERRED) -> Feed:
    feed = Feed()
    feed.engine.register("q", sql)
    feed.both()
    return feed


def test_answers_are_of_now_alone() -> None:
    feed = begun()
    feed.work()
    view = feed.engine.view()
    now_ms = view.now_ms("q")
    assert now_ms is not None
    assert view.snapshot("q", at=now_ms).table.equals(view.snapshot("q").table)
    with pytest.raises(InstantOutOfRange, match="of NOW"):
        view.snapshot("q", at=now_ms - 1)
    with pytest.raises(InstantOutOfRange, match="as they are found"):
        view.changes("q", now_ms - 5, 100)
    with pytest.raises(NotSupported, match="from scratch"):
        view.afresh("q", {})


@pytest.mark.parametrize("sql", [PREFERRED, SELECTED])
def test_a_query_that_is_paused_begins_anew(sql: str) -> None:
    feed = begun(sql)
    feed.work()
    due = feed.rows()
    assert due
    feed.options("q", sql, {"paused": "true"})
    assert not feed.engine.needs.preference_work()
    with pytest.raises(QueryPaused):
        feed.rows()
    feed.put("a", (1_020, 8, 5.0))
    feed.options("q", sql, {})
    assert feed.engine.needs.preference_work()
    assert feed.engine.view().snapshot("q").approximate
    feed.work()
    assert not feed.engine.view().snapshot("q").approximate
    assert [row for row in feed.rows() if row[0] < 8] == due
    feed.engine._check()


def test_a_followed_query_tells_what_it_finds_and_what_another_text_changes() -> None:
    feed = begun()
    feed.engine.follow("q")
    result = feed.work(3)
    (changes,) = result.changes
    assert plain_rows(changes.table) == plain_rows(feed.engine.view().snapshot("q").table)
    assert changes.approximation["q"][0].kind == "preference"
    other = f"{JOIN} AND a.k = 1 WITH PREFERENCE {SUMMARY} WINDOW 10 SECONDS"
    result = feed.step(Alter((Registration("q", other),)))
    assert not result.failed
    told = sum(int(one.weights.sum()) for one in (*changes_of(result), changes))
    assert told == len(feed.rows())
    told += sum(int(one.weights.sum()) for one in feed.work().changes)
    assert told == len(feed.rows()) == 4


def changes_of(result: StepResult) -> tuple[Any, ...]:
    return result.changes


def test_emitted_changes_begin_with_what_is_found() -> None:
    feed = Feed()
    feed.both()
    (told,) = feed.step(Register((Registration("q", f"{PREFERRED} EMIT CHANGES"),))).changes
    assert (told.occasion, len(told)) == ("snapshot", 0)
    (told,) = feed.work().changes
    assert (told.occasion, len(told), set(told.weights.tolist())) == ("step", 8, {1})
    (told,) = feed.put("a", (20_000, 1, 1.0)).changes or ((),)
    assert not len(told)  # NOW of both is what it was
    (told,) = feed.put("b", (20_000, 7, 1.0)).changes
    assert (len(told), set(told.weights.tolist())) == (8, {-1})
    assert feed.rows() == []


def test_history_that_comes_back_is_found_too() -> None:
    feed = Feed(retain="5 MILLISECONDS")
    feed.both()
    feed.put("a", (1_012, 7, 1.0), (1_014, 7, 0.0))
    feed.engine.register("q", SELECTED)
    feed.work()
    before = feed.rows()
    assert 0 < len(before) < 5
    stream = feed.engine.catalogue["a"]
    assert isinstance(stream, Stream)
    rows: list[tuple[int, int, int, Values]] = [(0, -3, 900, (5, 1.0)), (0, -2, 950, (1, 1.0))]
    feed.engine.backfill("a", batch_of(stream.schema, rows), 0)
    assert feed.engine.view().snapshot("q").approximate
    feed.work()
    assert feed.rows() == sorted([*before, (5, 1.0), (1, 1.0)])
    feed.engine._check()


def test_without_its_summary_a_query_keeps_what_was_found() -> None:
    feed = begun()
    feed.work(3)
    found = feed.rows()
    assert len(found) > 0
    assert feed.step(DropSummary("of_a")).failed
    feed.step(DropSummary("of_a", forced=True))
    assert feed.rows() == found
    assert not feed.engine.needs.preference_work()
    feed.put("b", (1_020, 1, 7.0), grant=ALL)
    assert feed.rows() == found
    (tag,) = feed.engine.view().snapshot("q").approximation
    assert (tag.kind, tag.amount) == ("preference", 0.0)
    feed.summarise("a")
    feed.work()
    assert not feed.engine.view().snapshot("q").approximate
    assert len(feed.rows()) == 8
    feed.engine._check()


def test_options_that_a_preference_cannot_have() -> None:
    feed = begun()
    result = feed.options("other", PREFERRED, {"max_fn": "0.1"})
    assert isinstance(result.failed["other"], OptionRefused)
    assert isinstance(feed.options("q", PREFERRED, {"max_fn": "0.1"}).failed["q"], OptionRefused)
    for options in ({"maintenance": "eager"}, {"fade": "0.25"}, {"priority": "density"}):
        assert not feed.options("q", PREFERRED, options).failed
    feed.work()
    assert len(feed.rows()) == 8


@pytest.mark.parametrize("sql", [PREFERRED, SELECTED])
def test_with_other_options_what_was_found_stays_and_is_found_once(sql: str) -> None:
    feed, store = begun(sql), MemoryState()
    feed.engine.register("exact", sql)
    feed.work(2)
    found = feed.rows()
    assert found
    feed.options("q", sql, {"fade": "0.5"})
    assert feed.rows() == found
    assert feed.engine.view().snapshot("q").approximate
    feed.engine.save(store)
    assert Feed(small_restored(store)).rows() == found
    feed.options("q", sql, {"fade": "0.25", "priority": "density"})
    before = found
    while feed.engine.needs.preference_work():
        feed.work(1)
        assert len(feed.rows()) >= len(before)
        before = feed.rows()
    assert before == feed.rows("exact") != found
    assert not feed.engine.view().snapshot("q").approximate
    feed.engine._check()


@pytest.mark.parametrize("sql", [PREFERRED, SELECTED])
def test_where_nothing_is_kept_each_answer_spends_a_grant_of_its_own(sql: str) -> None:
    feed, few = Feed(), Feed(small_engine(Limits(preference_work_max=2)), fresh=True)
    for one in (feed, few):
        one.options("q", sql, {"maintenance": "none"})
        one.both()
        assert not one.engine.needs.preference_work()
    exact = Feed()
    exact.engine.register("q", sql)
    exact.both()
    exact.work()
    whole, some = feed.engine.view(), few.engine.view()
    assert feed.rows() == exact.rows()
    assert not whole.snapshot("q").approximate
    (tag,) = some.snapshot("q").approximation
    assert (tag.kind, tag.unit) == ("preference", "percent")
    assert tag.unfinished is not None
    assert tag.unfinished.units_short > 0
    assert 0 < len(few.rows()) < len(exact.rows())
    (tag,) = some.approximation("q")
    assert (tag.amount, tag.unit) == (2.0, "units")
    feed.put("b", (1_020, 1, 7.0), (1_030, 1, 7.0))
    exact.put("b", (1_020, 1, 7.0), (1_030, 1, 7.0), grant=ALL)
    assert feed.rows() == exact.rows()
    few.options("q", sql, {})
    assert few.rows() == []
    few.work()
    assert not few.engine.view().snapshot("q").approximate
    few.options("q", sql, {"maintenance": "none"})
    assert few.engine.view().snapshot("q").approximate
    few.engine.unregister("q")
    few.engine._check()


def test_queries_that_lag_hold_the_summaries_of_streams_that_are_ahead() -> None:
    feed = Feed()
    window = "WINDOW 14 SECONDS"
    feed.engine.register("q", f"{JOIN} WITH PREFERENCE asc {SUMMARY} {window}")
    feed.engine.register("exact", JOIN.replace("a, b", "a [RANGE 14 SECONDS], b [RANGE 14 SECONDS]"))
    feed.put("b", (1_000, 0, 1.0), (1_001, 9, 1.0))
    feed.put("a", *((1_000 + 500 * n, n % 3, 1.0) for n in range(120)))
    for at_ms in range(2_000, 50_000, 8_000):
        feed.put("b", (at_ms, 1, 1.0), (at_ms + 1, 2, 1.0), grant=ALL)
        assert feed.rows() == feed.rows("exact") != []
        assert not feed.engine.view().snapshot("q").approximate
    held = feed.engine._parts.source("a").summarised.at_work["of_a"].now_ms
    assert held == feed.engine.view().now_ms("q")
    feed.engine.unregister("q")
    feed.put("a", (61_000, 1, 1.0))
    assert feed.engine._parts.source("a").summarised.at_work["of_a"].now_ms == feed.engine.view().now_of("a")


def test_what_was_found_outlives_a_restart_with_a_query_that_stands_no_more() -> None:
    feed, store = begun(), MemoryState()
    feed.engine.register("other", SELECTED)
    feed.work(3)
    feed.engine.save(store)
    feed.engine.unregister("other")
    feed.engine.save(store)
    again = Feed(small_restored(store))
    assert again.rows() == feed.rows()
    assert again.engine.needs.preference_work() == feed.engine.needs.preference_work()
    assert len(list(store.state_parts("promising/"))) == 1
    again.work()
    assert len(again.rows()) == 8
    again.engine._check()


def test_lists_of_frequent_values_are_kept_while_a_selection_with_a_preference_stands() -> None:
    feed, store = Feed(), MemoryState()
    feed.put("a", *((1_000 + n, n % 3, 1.0) for n in range(30)))  # the last row waits for NOW

    def listing(engine: Engine) -> list[bool]:
        return [engine._sources[name].summarised.at_work[f"of_{name}"].lists_values for name in "ab"]

    feed.engine.register("join", PREFERRED)
    feed.engine.save(store)
    assert listing(feed.engine) == [False, False]
    for name in ("one", "other"):
        feed.engine.register(name, SELECTED.replace("> 0", f"> {len(name)}"))
    feed.engine.save(store)
    assert listing(feed.engine) == listing(small_restored(store)) == [True, False]
    summary = feed.engine._sources["a"].summarised.at_work["of_a"]
    assert sorted(n for top in summary.tops(0) for n in top.estimate.tolist()) == [9, 10, 10]
    for name, stays in (("one", True), ("other", False)):
        feed.engine.unregister(name)
        feed.engine.save(store)
        assert listing(feed.engine) == listing(small_restored(store)) == [stays, False]
