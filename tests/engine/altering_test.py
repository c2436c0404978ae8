"""Altered queries: the answer is that of the new text, and what is told adds up to it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.limits import Limits
from engine.model.step import Alter, Registration, StepResult
from tests.capacities import small_restored
from tests.engine.feed import Feed, ticks
from tests.memory_state import MemoryState
from tests.queries.subscriptions import COUNTS, SLIDING, folded, register, spelled, step
from tureen.errors import LimitExceeded, UnknownColumn, UnknownQuery

PLAIN = "SELECT k, v FROM s [RANGE 5 MILLISECONDS]"


def alter(feed: Feed, query_id: str, sql: str, **options: str) -> StepResult:
    return step(feed, Alter((Registration(query_id, sql, options=options),)))


def test_difference_of_both_answers_is_told() -> None:
    feed = Feed()
    feed.put(*ticks([10, 11, 12, 13]))
    register(feed, "q", SLIDING)
    result = alter(feed, "q", SLIDING.replace("EMIT", "WHERE v > 10.5 EMIT"))
    assert result.continued == ("q",)
    assert list(spelled([result])) == [("q", "step", -1, 12, ("a", 10.0))]
    result = alter(feed, "q", SLIDING.replace("5 MILL", "50 MILL"))
    assert list(spelled([result])) == [("q", "step", 1, 12, ("a", 10.0))]
    feed.put((14, "b", 14.0))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SLIDING, SLIDING.replace("SELECT k, v", "SELECT v")),
        (COUNTS, COUNTS.replace("GROUP BY k", "GROUP BY k, v")),
        (SLIDING, SLIDING.replace("'diff'", "'debezium'")),
    ],
    ids=["columns", "key", "format"],
)
def test_other_columns_key_or_form_take_the_answer_back_and_give_the_new_one(before: str, after: str) -> None:
    feed = Feed()
    register(feed, "q", before)
    feed.put(*ticks([10, 11, 12, 13]))
    result = alter(feed, "q", after)
    assert not result.continued
    assert next(occasion for _, occasion, *_ in spelled([result])) == "end"
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    feed.put(*ticks([14, 20, 21]))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))


def test_rows_of_a_selection_that_go_are_told_though_none_ever_goes_by_itself() -> None:
    feed = Feed("SELECT k, v FROM s WHERE v > 10")
    feed.engine.follow("q0")
    feed.put(*ticks([10, 11, 12, 13]))
    result = alter(feed, "q0", "SELECT k, v FROM s WHERE v > 11")
    assert result.continued == ("q0",)
    assert list(spelled([result])) == [("q0", "step", -1, 12, ("a", 11.0))]


def test_istream_tells_rows_that_came_alone() -> None:
    feed = Feed("SELECT ISTREAM(k, v) FROM s [RANGE 5 MILLISECONDS] WHERE v > 11")
    feed.engine.follow("q0")
    feed.put(*ticks([10, 11, 12, 13]))
    result = alter(feed, "q0", "SELECT ISTREAM(k, v) FROM s [RANGE 5 MILLISECONDS] WHERE v < 12")
    assert {told[2:] for told in spelled([result])} == {(1, 12, ("a", 10.0)), (1, 12, ("a", 11.0))}


def test_whoever_follows_is_told_on_and_may_stop() -> None:
    feed = Feed(PLAIN)
    feed.engine.follow("q0")
    feed.put(*ticks([10, 11]))
    assert alter(feed, "q0", PLAIN + " WHERE v > 0").continued == ("q0",)
    feed.put(*ticks([12, 13]))
    assert len(list(spelled(feed.told[-1:]))) == 2
    feed.engine.unfollow("q0")
    feed.put(*ticks([14, 15]))
    assert not list(spelled(feed.told[-1:]))


def test_answer_of_a_paused_query_that_is_altered_ends_and_the_new_one_is_given_when_it_resumes() -> None:
    feed = Feed()
    feed.put(*ticks([10, 11, 12]))
    register(feed, "q", SLIDING)
    register(feed, "q", SLIDING, paused="true")
    feed.put(*ticks([13, 14]))
    altered = SLIDING.replace("EMIT", "WHERE v > 10.5 EMIT")
    result = alter(feed, "q", altered, paused="true")
    assert (result.continued, not folded(spelled(feed.told), "q")) == ((), True)
    assert {(occasion, at_ms) for _, occasion, _, at_ms, _ in spelled([result])} == {("end", 11)}
    feed.put(*ticks([15]))
    register(feed, "q", altered, paused="false")
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))


def test_refused_text_leaves_the_query_as_it_was() -> None:
    feed = Feed()
    feed.put(*ticks([10, 11, 12]))
    register(feed, "q", SLIDING)
    born = feed.engine.view().query("q").born
    assert isinstance(alter(feed, "q", "SELECT nothing FROM s").failed["q"], UnknownColumn)
    assert isinstance(alter(feed, "other", SLIDING).failed["other"], UnknownQuery)
    assert feed.engine.view().query("q").born == born
    feed.put(*ticks([13, 14, 19]))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    feed.engine._check()


def test_answer_too_large_to_tell_refuses_the_text_and_the_old_one_goes_on() -> None:
    feed = Feed()
    feed.engine._parts.settings.limits = feed.engine._following.answers._limits = Limits(changes_max=3)
    feed.put(*ticks([10, 11, 12, 13, 14]))
    register(feed, "q", SLIDING.replace("5 MILL", "1 MILL"))
    result = alter(feed, "q", SLIDING.replace("5 MILL", "500 MILL"))
    assert isinstance(result.failed["q"], LimitExceeded)
    assert not result.broken
    assert feed.engine.view().query("q").sql == SLIDING.replace("5 MILL", "1 MILL")
    feed.put(*ticks([15, 16]))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    feed.engine._check()


def test_altered_query_comes_back_from_the_store() -> None:
    feed = Feed(PLAIN)
    feed.put(*ticks([10, 11, 12]))
    store = MemoryState()
    feed.engine.save(store)
    alter(feed, "q0", PLAIN + " WHERE v > 10.5")
    feed.engine.save(store)
    back = small_restored(store)
    assert back.view().query("q0").sql == PLAIN + " WHERE v > 10.5"
    assert back.view().query("q0").born == feed.engine.view().query("q0").born
    assert back.view().snapshot("q0").table.num_rows == feed.engine.view().snapshot("q0").table.num_rows


TEXTS = (
    SLIDING,
    SLIDING.replace("EMIT", "WHERE v > 5 EMIT"),
    SLIDING.replace("5 MILL", "50 MILL"),
    "SELECT DISTINCT k, v FROM s [RANGE 9 MILLISECONDS] EMIT CHANGES WITH (format = 'diff')",
    "SELECT k, MAX(v) AS v FROM s GROUP BY k EMIT CHANGES WITH (format = 'diff')",
    COUNTS,
    "SELECT s.k, s.v FROM s [RANGE 5 MILLISECONDS] JOIN s [RANGE 3 MILLISECONDS] b ON s.k = b.k EMIT CHANGES",
)


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from(TEXTS), st.booleans()), min_size=1, max_size=8))
def test_whatever_it_is_altered_to_what_is_told_adds_up(changes: list[tuple[int, str, bool]]) -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    now = 10
    for ahead, sql, alone in changes:
        if not alone:
            now += ahead
            feed.put((now, "ab"[now % 2], float(now % 7)))
        result = alter(feed, "q", sql)
        assert not result.failed
        assert folded(spelled(feed.told), "q") == _rows(feed)
    feed.put((now + 8, "a", 1.0))
    assert folded(spelled(feed.told), "q") == _rows(feed)
    feed.engine._check()


def _rows(feed: Feed) -> Counter[tuple[Any, ...]]:
    return Counter(feed.rows("q"))
