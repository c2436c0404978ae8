"""History that comes back: what fits, to the millisecond, what stays of it, and what is told of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import Backfill, Position, Step, StepResult
from engine.model.types import TIMESTAMP_MS_MIN
from engine.stems.data_stem import RAISED
from engine.views.recompute import History
from tests.capacities import small_engine, small_restored
from tests.engine.feed import TIMED, Feed, plain, ticks
from tests.memory_state import MemoryState
from tests.sources.backfill import history, maintained
from tureen.errors import BackfillRefused, InstantOutOfRange, LimitExceeded, UnknownSource

S = SourceName("s")
LONG = "SELECT v FROM s [RANGE 500 MILLISECONDS]"


def step(engine: Engine, batch: Batch, from_ms: int, until_ms: int) -> StepResult:
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, Backfill(S, batch, from_ms, until_ms)))
    (result,) = engine.run()
    return result


@pytest.fixture
def feed() -> Feed:
    """Rows each 100 ms from 0 to 1000, of which the last 100 ms are left, and a query that wants 500."""
    feed = Feed(retain="100 MILLISECONDS")
    feed.put(*ticks(range(0, 1_001, 100)))
    feed.now(1_000)
    feed.engine.register("q0", LONG)
    return feed


def test_rows_come_back_before_those_that_are_there(feed: Feed) -> None:
    assert (feed.values(), feed.answer().complete_from_ms) == ([900.0, 1_000.0], 900)
    came = feed.engine.backfill("s", history(feed.engine, *ticks([700, 800])), 650)
    assert (came.entered, came.now_ms) == (2, 1_000)
    assert (feed.values(), feed.answer().complete_from_ms) == ([700.0, 800.0, 900.0, 1_000.0], 650)
    feed.engine.backfill("s", history(feed.engine, *ticks([500, 600])), 500)
    assert feed.values() == [500.0, 600.0, 700.0, 800.0, 900.0, 1_000.0]
    assert feed.answer().complete
    feed.engine._check()


def test_what_comes_after_goes_on_as_ever(feed: Feed) -> None:
    feed.engine.backfill("s", history(feed.engine, *ticks([500, 600, 700, 800])), 500)
    feed.put(*ticks([1_100, 1_150]))
    feed.now(1_201)
    assert feed.values() == [800.0, 900.0, 1_000.0, 1_100.0, 1_150.0]
    assert feed.answer().complete
    feed.engine._check()


def test_the_seam_is_where_rows_are_retained_from_to_the_ms(feed: Feed) -> None:
    assert feed.engine.view().boundary_ms("s") == 900
    with pytest.raises(BackfillRefused, match="not all from 800 on and before 900"):
        feed.engine.backfill("s", history(feed.engine, (900, "again", 9.0)), 800)
    feed.engine.backfill("s", history(feed.engine, (800, "a", 1.0), (899, "b", 2.0)), 800)
    assert feed.values() == [1.0, 2.0, 900.0, 1_000.0]
    with pytest.raises(BackfillRefused, match="not all from 700 on and before 800"):
        feed.engine.backfill("s", history(feed.engine, (800, "a", 1.0)), 700)


def test_rows_of_one_instant_are_told_apart_by_partition_and_offset(feed: Feed) -> None:
    both = history(feed.engine, (850, "a", 1.0), (850, "b", 2.0))
    turned = both.take(np.array([1, 0]))
    with pytest.raises(BackfillRefused, match="order"):
        feed.engine.backfill("s", turned, 800)
    with pytest.raises(BackfillRefused, match="order"):
        feed.engine.backfill("s", both.take(np.array([0, 0])), 800)
    feed.engine.backfill("s", both, 800)
    assert feed.values() == [1.0, 2.0, 900.0, 1_000.0]


def test_while_nothing_has_gone_it_ends_at_the_first_row() -> None:
    feed = Feed(LONG)
    feed.put(*ticks([400, 450]))
    feed.now(500)
    feed.engine._source("s").retained_from_ms = None  # as while a query has no NOW
    assert feed.engine.needs.history("s").until_ms == 400  # type: ignore[union-attr]
    assert not feed.engine.needs.history("s").gone  # type: ignore[union-attr]
    with pytest.raises(BackfillRefused):
        feed.engine.backfill("s", history(feed.engine, (400, "a", 1.0)), 100)
    feed.engine.backfill("s", history(feed.engine, (399, "a", 1.0)), 100)
    assert feed.values() == [1.0, 400.0, 450.0]


@pytest.mark.parametrize("until_ms", [899, 901])
def test_history_that_ends_elsewhere_is_refused_and_changes_nothing(feed: Feed, until_ms: int) -> None:
    before = feed.engine.position
    result = step(feed.engine, history(feed.engine, *ticks([700])), 700, until_ms)
    refused = result.failed["s"]
    assert isinstance(refused, BackfillRefused)
    assert (refused.boundary_ms, refused.code) == (900, "backfill_refused")
    assert feed.engine.position.sequence == before.sequence + 1
    assert (feed.values(), feed.answer().complete_from_ms) == ([900.0, 1_000.0], 900)


def test_history_that_is_complete_from_after_its_end_is_refused(feed: Feed) -> None:
    assert isinstance(step(feed.engine, history(feed.engine), 901, 900).failed["s"], BackfillRefused)


def test_another_schema_is_refused(feed: Feed) -> None:
    batch = history(feed.engine, *ticks([800]))
    schema = replace(batch.schema, fields=batch.schema.fields[:-1])
    other = replace(batch, schema=schema, columns=batch.columns[:-1])
    with pytest.raises(BackfillRefused, match="schema"):
        feed.engine.backfill("s", other, 800)


def test_a_stream_without_now_and_a_table_take_none() -> None:
    feed = Feed()
    assert feed.engine.needs.history("s") is None
    with pytest.raises(BackfillRefused, match="no NOW"):
        feed.engine.backfill("s", history(feed.engine, *ticks([1])), 0)
    engine = small_engine()
    engine.create("CREATE TABLE s (k STRING, v DOUBLE, ts TIMESTAMP, PRIMARY KEY (k))")
    assert engine.needs.history("s") is None
    assert engine.view().boundary_ms("s") is None
    with pytest.raises(BackfillRefused, match="table"):
        engine.backfill("s", history(engine, *ticks([1])), 0)
    with pytest.raises(UnknownSource):
        engine.view().boundary_ms("t")


def test_nothing_that_was_there_moves_from_when_answers_are_complete(feed: Feed) -> None:
    feed.engine.backfill("s", history(feed.engine), 600)
    assert (feed.values(), feed.answer().complete_from_ms) == ([900.0, 1_000.0], 600)
    feed.engine.backfill("s", history(feed.engine), TIMESTAMP_MS_MIN)
    assert feed.answer().complete


def test_what_no_window_needs_goes_again_at_once(feed: Feed) -> None:
    feed.engine.backfill("s", history(feed.engine, *ticks([100, 200, 550])), 50)
    assert feed.values() == [550.0, 900.0, 1_000.0]
    (source,) = feed.engine.view().sources()
    assert (source.retained_from_ms, source.rows) == (500, 3)
    feed.engine.unregister("q0")
    (source,) = feed.engine.view().sources()
    assert (source.retained_from_ms, source.rows) == (900, 2)
    feed.engine.backfill("s", history(feed.engine, *ticks([600, 700])), 550)
    (source,) = feed.engine.view().sources()
    assert (source.retained_from_ms, source.rows) == (900, 2)


@pytest.mark.parametrize("mode", ["none", "lazy", "eager"])
def test_rows_kept_for_the_last_n_are_replaced_as_far_as_history_reaches(mode: str) -> None:
    """One of it came too late for the stream."""
    feed = Feed(retain="100 MILLISECONDS")
    texts = {
        "q0": "SELECT v FROM s [ROWS 4]",
        "first": "SELECT MIN(v) AS v FROM s [ROWS 4]",
        "joined": "SELECT a.v FROM s [ROWS 4] AS a JOIN s [ROWS 4] AS b ON a.v = b.v",
    }
    for query_id, sql in texts.items():
        maintained(feed.engine, query_id, sql, mode)
    feed.put(*ticks(range(0, 1_001, 100)))
    feed.now(1_050)
    assert feed.values() == feed.values("joined") == [700.0, 800.0, 900.0, 1_000.0]
    rows = [(800, "a", 800.0), (850, "late", 850.0), (900, "a", 900.0)]
    feed.engine.backfill("s", history(feed.engine, *rows), 750)
    assert feed.values() == feed.values("joined") == [800.0, 850.0, 900.0, 1_000.0]
    assert feed.values("first") == [800.0]
    assert feed.answer().complete
    feed.engine._check()


@pytest.mark.parametrize("mode", ["none", "lazy", "eager"])
def test_joins_find_what_came_back(mode: str) -> None:
    feed = Feed(retain="100 MILLISECONDS")
    feed.put(*ticks(range(0, 1_001, 100)))
    feed.now(1_000)
    pairs = "SELECT a.v AS a, b.v AS b FROM s [RANGE {}] AS a JOIN s [RANGE {}] AS b ON a.k = b.k"
    maintained(feed.engine, "q0", pairs.format("300 MILLISECONDS", "200 MILLISECONDS"), mode)
    assert feed.rows() == [(a, b) for a in (900.0, 1_000.0) for b in (900.0, 1_000.0)]
    feed.engine.backfill("s", history(feed.engine, *ticks([800])), 750)
    feed.engine.backfill("s", history(feed.engine, *ticks([700])), 700)
    assert feed.rows() == [(a, b) for a in (700.0, 800.0, 900.0, 1_000.0) for b in (800.0, 900.0, 1_000.0)]
    feed.put(*ticks([1_050]))
    feed.now(1_050)
    assert feed.rows() == [
        (a, b) for a in (800.0, 900.0, 1_000.0, 1_050.0) for b in (900.0, 1_000.0, 1_050.0)
    ]
    feed.engine._check()


def test_the_last_n_rows_are_wanted_and_come() -> None:
    feed = Feed(retain="100 MILLISECONDS")
    feed.put(*ticks(range(0, 1_001, 100)))
    feed.now(1_000)
    feed.engine.register("q0", "SELECT v FROM s [ROWS 5]")
    wanted = feed.engine.needs.history("s")
    assert wanted is not None
    assert (wanted.from_ms, wanted.rows, wanted.gone) == (None, 3, True)
    assert not feed.answer().complete
    feed.engine.backfill("s", history(feed.engine, *ticks([500, 600, 700, 800])), 450)
    assert feed.values() == [600.0, 700.0, 800.0, 900.0, 1_000.0]
    assert feed.answer().complete
    assert feed.engine.needs.history("s").rows == 0  # type: ignore[union-attr]


def test_what_windows_want(feed: Feed) -> None:
    wanted = feed.engine.needs.history("s")
    assert wanted is not None
    assert (wanted.until_ms, wanted.from_ms, wanted.rows, wanted.gone) == (900, 500, 0, True)
    feed.engine.register("hop", "SELECT v FROM TUMBLE(s, INTERVAL '400' MILLISECOND)")
    assert feed.engine.needs.history("s").from_ms == 200  # type: ignore[union-attr]
    feed.engine.unregister("hop")
    feed.engine.backfill("s", history(feed.engine, *ticks([700])), 650)
    assert feed.engine.needs.history("s").from_ms == 500  # type: ignore[union-attr]
    feed.engine.backfill("s", history(feed.engine), 400)
    wanted = feed.engine.needs.history("s")
    assert wanted is not None
    assert (wanted.from_ms, wanted.rows) == (None, 0)


def test_more_than_ever_was_there_moves_all_rows_up(feed: Feed) -> None:
    """Eleven rows had come, nine are gone; then thirty come back."""
    eager = "SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 500 MILLISECONDS]"
    feed.engine.register("eager", eager)
    feed.engine.register(
        "joined", "SELECT a.v FROM s [RANGE 500 MILLISECONDS] AS a JOIN s [NOW] AS b ON a.k = b.k"
    )
    many = ticks(range(600, 900, 10))
    feed.engine.backfill("s", history(feed.engine, *many), 400)
    assert feed.engine._source("s").rows.base == RAISED + 9 - 30
    assert feed.rows("eager") == [(32, sum(row[2] or 0.0 for row in many) + 1_900.0)]
    assert len(feed.values("joined")) == 32
    feed.put(*ticks([1_100]))
    feed.now(1_100)
    assert feed.rows("eager") == [(33, sum(row[2] or 0.0 for row in many) + 3_000.0)]
    feed.engine._check()


def test_a_view_that_was_taken_before_stays_as_it_is(feed: Feed) -> None:
    view = feed.engine.view()
    feed.engine.backfill("s", history(feed.engine, *ticks(range(500, 900, 10))), 500)
    assert view.snapshot("q0").table.column(0).to_pylist() == [900.0, 1_000.0]
    assert len(feed.values()) == 42


def test_arrival_time_has_history_too() -> None:
    engine = small_engine()
    engine.create("CREATE STREAM s (v INTEGER) RETAIN 100 MILLISECONDS")
    schema = engine.catalogue["s"].schema

    def rows(first: int, *stamps: int) -> Batch:
        table = pa.table({"v": pa.array(stamps, pa.int32())})
        offsets = np.arange(first, first + len(stamps))
        return Batch.from_arrow(schema, table, np.zeros(len(stamps)), offsets, stamps)

    engine.ingest("s", rows(5, 900, 1_000), clock_ms=1_001)
    engine.register("q", "SELECT v FROM s [RANGE 1 SECOND]", clock_ms=1_001)
    engine.backfill("s", rows(0, 10, 20, 899), 0)
    assert engine.view().snapshot("q").table.column(0).to_pylist() == [10, 20, 899, 900, 1_000]


# --- what is told -------------------------------------------------------------------------------------


def told(result: StepResult) -> list[tuple[str, list[tuple[int, int, Any]]]]:
    return [
        (
            changes.query_ids[0],
            list(
                zip(
                    changes.weights.tolist(),
                    changes.at_ms.tolist(),
                    changes.table.column(0).to_pylist(),
                    strict=True,
                )
            ),
        )
        for changes in result.changes
    ]


def test_followed_queries_are_told_the_difference_at_now(feed: Feed) -> None:
    feed.engine.register("n", "SELECT COUNT(*) AS n FROM s [RANGE 500 MILLISECONDS] EMIT CHANGES")
    feed.engine.follow("q0")
    result = feed.engine.backfill("s", history(feed.engine, *ticks([800])), 700)
    assert dict(told(result)) == {"n": [(-1, 1_000, 2), (1, 1_000, 3)], "q0": [(1, 1_000, 800.0)]}
    assert {changes.occasion for changes in result.changes} == {"step"}
    result = feed.engine.backfill("s", history(feed.engine), 600)
    assert told(result) == []
    assert told(feed.put(*ticks([1_100]))) == []


def test_who_asks_for_rows_that_come_is_not_told_of_what_is_past(feed: Feed) -> None:
    for operator in "ISTREAM", "DSTREAM", "RSTREAM":
        count = f"{operator}(SELECT COUNT(*) AS n FROM s [RANGE 500 MILLISECONDS])"
        feed.engine.register(operator, f"{count} EMIT CHANGES WITH (snapshot = false)")
    result = feed.engine.backfill("s", history(feed.engine, *ticks([800])), 700)
    assert dict(told(result)) == {"DSTREAM": [(-1, 1_000, 2)], "RSTREAM": [(1, 1_000, 3)]}


def test_what_is_told_after_it_goes_on_from_it() -> None:
    """Sums of the last three rows, one of which came too late for the stream, and then others."""
    feed = Feed(retain="100 MILLISECONDS")
    feed.engine.register("q0", "SELECT k, SUM(CAST(v AS INTEGER)) AS v FROM s [ROWS 3] GROUP BY k")
    feed.engine.follow("q0")
    sums: Counter[tuple[Any, ...]] = Counter()

    def add(result: StepResult) -> None:
        for changes in result.changes:
            rows = zip(*(plain(column) for column in changes.table.columns), strict=True)
            for row, weight in zip(rows, changes.weights.tolist(), strict=True):
                sums[row] += weight

    for stamp in (700, 800, 1_000):
        feed.put(*ticks([stamp], "ab"[stamp > 700]))
    feed.now(1_050)
    for result in feed.told:
        add(result)
    assert +sums == Counter(feed.rows())
    rows = [(700, "a", 700.0), (800, "b", 800.0), (850, "a", 3.0)]
    add(feed.engine.backfill("s", history(feed.engine, *rows), 600))
    assert +sums == Counter(feed.rows()) == Counter([("a", 3), ("b", 1_800)])
    feed.told.clear()
    for stamp in (1_100, 1_150, 1_200):
        feed.put(*ticks([stamp]))
    feed.now(1_250)
    for result in feed.told:
        add(result)
    assert +sums == Counter(feed.rows()) == Counter([("a", 3_450)])


def test_a_replay_tells_nothing(feed: Feed) -> None:
    feed.engine.follow("q0")
    feed.engine.tells = False
    assert feed.engine.backfill("s", history(feed.engine, *ticks([800])), 700).changes == ()
    assert feed.values() == [800.0, 900.0, 1_000.0]


def test_an_answer_too_large_to_compare_is_told_to_be_broken() -> None:
    feed = Feed(retain="100 MILLISECONDS")
    feed.engine = small_engine(Limits(changes_max=3))
    feed.engine.create(
        f"CREATE STREAM s (k STRING, v DOUBLE, ts TIMESTAMP) WITH ({TIMED}) RETAIN 100 MILLISECONDS"
    )
    feed.put(*ticks([900, 1_000]))
    feed.now(1_000)
    feed.engine.register("q0", LONG)
    feed.engine.follow("q0")
    result = feed.engine.backfill("s", history(feed.engine, *ticks([700, 800])), 700)
    assert isinstance(result.broken["q0"], LimitExceeded)
    assert len(feed.values()) == 4


def test_errors_of_predicates_are_counted_as_rows_come(feed: Feed) -> None:
    feed.engine.register("div", "SELECT v FROM s [RANGE 500 MILLISECONDS] WHERE 1 / CAST(v AS INTEGER) = 0")
    assert feed.engine.view().query("div").predicate_errors == 0
    feed.engine.backfill("s", history(feed.engine, (700, "a", 0.0), (800, "a", 2.0)), 700)
    assert feed.engine.view().query("div").predicate_errors == 1
    assert feed.values("div") == [2.0, 900.0, 1_000.0]


# --- restarts -----------------------------------------------------------------------------------------


def test_it_is_there_after_a_restart_however_often_it_was_saved(feed: Feed) -> None:
    store = MemoryState()
    feed.engine.save(store)
    feed.engine.backfill("s", history(feed.engine, *ticks([700, 800])), 650)
    feed.engine.save(store)
    feed.engine.backfill("s", history(feed.engine, *ticks(range(500, 650, 5))), 500)
    expected = feed.values()
    store.full = True
    with pytest.raises(Exception, match="full"):
        feed.engine.save(store)
    store.full = False
    feed.engine.save(store)
    for _ in range(2):
        feed.engine = small_restored(store)
        feed.engine._check()
        assert feed.values() == expected
        assert feed.answer().complete
        feed.engine.save(store)
    feed.put(*ticks([1_100]))
    feed.now(1_100)
    feed.engine.save(store)
    assert small_restored(store).view().snapshot("q0").table == feed.answer().table


# --- answers from scratch -----------------------------------------------------------------------------


def test_answers_from_scratch_reach_into_history(feed: Feed) -> None:
    feed.engine.register("all", "SELECT COUNT(*) AS n FROM s")
    view = feed.engine.view()

    def given(complete_from_ms: int | None, *stamps: int) -> dict[SourceName, History]:
        return {S: History([history(feed.engine, *ticks(stamps))], complete_from_ms)}

    answer = view.afresh("all", given(None, *range(0, 900, 100)))
    assert (answer.table.column(0).to_pylist(), answer.complete, answer.position) == (
        [11],
        True,
        view.position,
    )
    answer = view.afresh("all", given(300, *range(300, 900, 100)))
    assert (answer.table.column(0).to_pylist(), answer.complete_from_ms) == ([8], 300)
    answer = view.afresh("q0", given(100, *range(100, 900, 100)), at=700)
    assert answer.table.column(0).to_pylist() == [200.0, 300.0, 400.0, 500.0, 600.0, 700.0]
    assert answer.now_ms == 700
    with pytest.raises(InstantOutOfRange) as refused:
        view.afresh("q0", given(300, *range(300, 900, 100)), at=700)
    assert refused.value.earliest_ms == 800
    with pytest.raises(InstantOutOfRange):
        view.afresh("q0", {}, at=1_001)
    with pytest.raises(BackfillRefused):
        view.afresh("q0", given(300, 950))
    assert feed.values() == [900.0, 1_000.0]


def test_answers_from_scratch_take_so_many_rows_at_most() -> None:
    feed = Feed(LONG, retain="100 MILLISECONDS")
    feed.put(*ticks([900, 1_000]))
    feed.now(1_700)
    batches = [history(feed.engine, *ticks([stamp]), first_offset=stamp) for stamp in (100, 200, 300)]
    view = replace(feed.engine.view(), limits=Limits(archive_rows_max=2))
    with pytest.raises(LimitExceeded, match="archive_rows_max"):
        view.afresh("q0", {S: History(batches, None)})
    assert view.afresh("q0", {S: History(batches[:2], None)}).complete
