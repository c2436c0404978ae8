"""Rows that break a promise of their stream are those of the definition, whatever the cuts and restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.answer import QueryInfo
from engine.model.batch import Batch
from engine.model.constraint import Clustered, Constraint, Ordered, Unique, text_of
from engine.model.source import SourceName, Stream
from engine.model.step import Heartbeat, Position, Step, StepResult
from engine.reference.constraints import again_by, broken_by
from engine.sources.past_values import PastValues
from storage.state_codec import decode_source, encode_source
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState

RETAIN_MS = 40
LATENESS_MS = 6
IDLE_MS = 1_000

RowOf = tuple[int, int, str | None, float | None, int | None]
"""partition, ts, word, x, n."""

ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 4),
        st.sampled_from(["a", "b", "c", "d", None]),
        st.sampled_from([0.0, -0.0, 1.0, -1.5, 2.0, float("nan"), None]),
        st.one_of(st.integers(0, 5), st.none()),
    ),
    min_size=1,
    max_size=60,
)
K = st.integers(0, 4)
COLUMNS = st.sampled_from([("word",), ("x",), ("n",), ("word", "n"), ("n", "x", "word")])
CONSTRAINTS = st.lists(
    st.one_of(
        st.builds(Ordered, st.sampled_from(["n", "x", "ts"]), K),
        st.builds(Clustered, COLUMNS, K),
        st.builds(Unique, COLUMNS),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda one: frozenset([one.column] if isinstance(one, Ordered) else one.columns),
)


class Fed:
    """An engine with one stream, fed in steps, saved and restored between them."""

    def __init__(self, constraints: Sequence[Constraint], reach: str = "10 DAYS") -> None:
        clauses = "".join(f", {text_of(one)}" for one in constraints)
        self.engine = small_engine()
        self.engine.create(
            f"CREATE STREAM s (word STRING, x DOUBLE, n INTEGER, ts TIMESTAMP{clauses}) WITH "
            f"(timestamp = 'ts', lateness = {LATENESS_MS} MS, idle_timeout = {IDLE_MS} MS) "
            f"RETAIN {RETAIN_MS} MILLISECONDS"
        )
        self.engine.register("q", f"SELECT * FROM s [RANGE {reach}]")
        self.engine.register("few", "SELECT x FROM s WHERE n = 4 AND word <> 'a'")
        self.engine.register("more", "SELECT COUNT(*) FROM s WHERE 10 / (n - 1) > 3")
        self.results: list[StepResult] = []
        self.late: set[int] = set()
        self._store = MemoryState()

    def put(self, rows: Sequence[tuple[int, RowOf]]) -> None:
        """One step. rows: each with its offset."""
        stream = self.engine.catalogue["s"]
        assert isinstance(stream, Stream)
        _, ts, words, xs, ns = zip(*(row for _, row in rows), strict=True)
        table = pa.table(
            {
                "word": pa.array(words, pa.string()),
                "x": pa.array(xs, pa.float64()),
                "n": pa.array(ns, pa.int32()),
                "ts": pa.array(ts, pa.timestamp("ms")),
            }
        )
        offsets = [offset for offset, _ in rows]
        batch = Batch.from_arrow(stream.schema, table, [row[0] for _, row in rows], offsets, ts)
        result = self.engine.ingest("s", batch, 10_000, frozenset({0, 1}))
        self.results.append(result)
        self.late |= {offsets[place] for place in result.late}
        self.engine._check()

    def flush(self) -> None:
        """All that waits enters."""
        for clock_ms in (20_000, 30_000):
            last = self.engine.position
            beat = Heartbeat(SourceName("s"))
            self.engine.enqueue(Step(Position(0, last.sequence + 1), clock_ms, beat))
            self.results += self.engine.run()
        self.engine._check()

    def restart(self) -> None:
        self.engine.save(self._store)
        for state in self._store.sources():
            assert decode_source(encode_source(state), "s") == state
        self.engine = small_restored(self._store)
        self.engine._check()

    def violations(self) -> list[tuple[int, str]]:
        """(offset, reason), in the order in which they were told."""
        return [
            (offset, reason)
            for result in self.results
            for one in result.violations
            if one.withheld
            for offset, reason in zip(one.rows.offset.tolist(), one.reasons, strict=True)
        ]

    def again(self) -> list[tuple[int, str]]:
        """(offset, reason) of rows that entered with a value of the past."""
        return [
            (offset, reason)
            for result in self.results
            for one in result.violations
            if one.again
            for offset, reason in zip(one.rows.offset.tolist(), one.reasons, strict=True)
        ]


def timed(rows: Sequence[RowOf]) -> list[tuple[int, RowOf]]:
    """Rows with offsets; each goes on from the one before by its own ms, out of order by the partition."""
    at, found = 0, []
    for offset, (partition, passed, *rest) in enumerate(rows):
        at += passed
        found.append((offset, (partition, at - 3 * partition, *rest)))
    return found  # type: ignore[return-value]


def expected(
    fed: Fed, rows: Sequence[tuple[int, RowOf]], constraints: Sequence[Constraint]
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """What the definition says of the rows that were not late: those that do not enter, and those whose
    values come again.
    """
    order = sorted(
        ((row[1], row[0], offset, row) for offset, row in rows if offset not in fed.late),
        key=lambda one: one[:3],
    )
    values: list[tuple[int, dict[str, Any]]] = [
        (ts, dict(zip(("word", "x", "n", "ts"), (*row[2:], ts), strict=True))) for ts, _, _, row in order
    ]
    broken = broken_by(values, constraints, RETAIN_MS)
    withheld = [
        (offset, f"the row breaks {text_of(constraints[place])}")
        for (_, _, offset, _), place in zip(order, broken, strict=True)
        if place is not None
    ]
    again = [
        (order[row][2], f"the row breaks {text_of(constraints[place])}, after RETAIN; it has entered")
        for row, place in again_by(values, constraints, RETAIN_MS)
    ]
    return withheld, again


@settings(deadline=None)
@given(ROWS, CONSTRAINTS, st.lists(st.integers(1, 9), min_size=1), st.lists(st.booleans(), min_size=1))
def test_the_same_rows_break_a_promise_whatever_the_cuts_and_restarts(
    rows: list[RowOf], constraints: list[Constraint], cuts: list[int], restarts: list[bool]
) -> None:
    numbered = timed(rows)
    whole, cut = Fed(constraints), Fed(constraints)
    whole.put(numbered)
    whole.flush()
    start = step = 0
    while start < len(numbered):
        stop = start + cuts[step % len(cuts)]
        cut.put(numbered[start:stop])
        if restarts[step % len(restarts)]:
            cut.restart()
        start, step = stop, step + 1
    cut.flush()
    assert cut.late == whole.late
    withheld, again = expected(whole, numbered, constraints)
    assert cut.violations() == whole.violations() == withheld
    assert cut.again() == whole.again() == again
    found = cut.engine.view().snapshot("q").table.to_pylist()
    kept = whole.engine.view().snapshot("q").table.to_pylist()
    assert str(found) == str(kept)
    assert len(kept) + len(cut.late) + len(cut.violations()) == len(rows)
    assert tags_of(cut) == tags_of(whole)
    broken = [dict(numbered)[offset] for offset, _ in cut.violations()]
    assert tags_of(cut).keys() == {
        *(["q"] if broken else []),
        *("few" for row in broken if row[4] == 4 and row[2] not in ("a", None)),
        *("more" for row in broken if row[4] in (2, 3)),
    }
    assert [one.predicate_errors for one in infos(cut)] == [one.predicate_errors for one in infos(whole)]


def test_a_later_query_is_tagged_while_the_time_of_a_withheld_row_is_retained() -> None:
    fed = Fed([Unique(("n",))])
    fed.engine.unregister("q")  # its window keeps rows for days
    fed.put([(0, (1, 500, "a", None, None))])
    fed.put([(0, (0, 0, "a", None, 1)), (1, (0, 5, "a", None, 1)), (2, (0, 30, "a", None, 2))])
    fed.engine.register("later", "SELECT n FROM s WHERE n > 1")
    fed.put([(3, (0, 300, "a", None, 3)), (4, (0, 301, "a", None, 4))])
    fed.engine.register("latest", "SELECT n FROM s WHERE n > 1")
    assert tags_of(fed).keys() == {"later"}
    fed.restart()
    assert tags_of(fed).keys() == {"later"}
    fed.engine.unregister("later")
    fed.engine.register("later", "SELECT n FROM s WHERE n > 1")
    assert not tags_of(fed)


def infos(fed: Fed) -> list[QueryInfo]:
    return sorted(fed.engine.view().queries(), key=lambda one: one.query_id)


def tags_of(fed: Fed) -> dict[str, list[tuple[str, str, float]]]:
    """The tags of queries that have some, by query id."""
    found = {
        query.query_id: [(tag.kind, tag.where, tag.amount) for tag in query.approximation]
        for query in infos(fed)
    }
    return {query_id: tags for query_id, tags in found.items() if tags}


@settings(deadline=None)
@given(ROWS, CONSTRAINTS, st.lists(st.integers(1, 9), min_size=1), st.lists(st.booleans(), min_size=1))
def test_values_of_the_past_are_known_when_their_rows_are_gone(
    rows: list[RowOf], constraints: list[Constraint], cuts: list[int], restarts: list[bool]
) -> None:
    numbered = timed(rows)
    cut = Fed(constraints, reach="1 MILLISECOND")
    start = step = 0
    while start < len(numbered):
        stop = start + cuts[step % len(cuts)]
        cut.put(numbered[start:stop])
        if restarts[step % len(restarts)]:
            cut.restart()
        start, step = stop, step + 1
    cut.flush()
    withheld, again = expected(cut, numbered, constraints)
    assert cut.violations() == withheld
    assert cut.again() == again


@pytest.mark.parametrize("columns", [("n",), ("word", "n"), ("word",)])
@pytest.mark.parametrize("kind", ["clustered", "unique"])
def test_thousands_of_values_of_the_past(columns: tuple[str, ...], kind: str) -> None:
    """Far more than are numbered at first, each in one row, then each again."""
    constraint = Unique(columns) if kind == "unique" else Clustered(columns, 0)
    fed = Fed([constraint], reach="1 MILLISECOND")
    fed.engine.register("groups", f"SELECT {columns[0]}, COUNT(*) AS n FROM s GROUP BY {columns[0]}")
    values = 5_000
    numbered = [(at, (0, at, f"w{at % values}", None, at % values)) for at in range(2 * values)]
    for start in range(0, len(numbered), 700):
        fed.put(numbered[start : start + 700])
        if start % 2_100 == 0:
            fed.restart()
    fed.flush()
    assert not fed.violations()
    assert [offset for offset, _ in fed.again()] == list(range(values, 2 * values))
    tags = tags_of(fed)
    assert tags.keys() == {"groups"}
    ((what, where, amount),) = tags["groups"]
    assert (what, where) == ("constraint", "s")
    assert 0.9 * values < amount <= values


def test_of_more_values_than_are_kept_the_newest_are_known() -> None:
    past = PastValues(values_max=20)
    past.add(np.arange(100))
    for first in range(100, 130, 3):
        past.add(np.arange(first, first + 3))
    assert past.has(np.arange(120, 130)).all()
    assert len(past.all()) <= 30
    assert not past.has(np.array([5, 500])).any()
    known = int(past.has(np.arange(130)).sum())
    assert past.forgotten == 130 - known > 0


def test_forgotten_are_the_values_that_are_known_no_more() -> None:
    past = PastValues(values_max=4)
    past.add(np.array([1, 2]))
    assert past.forgotten == 0
    past.add(np.array([1, 3]))
    assert (past.forgotten, past.has(np.array([1, 2, 3])).tolist()) == (1, [True, False, True])
