"""ISTREAM and DSTREAM are differences of bags between instants (CQL): SELECT * FROM s gives back s."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.source import Stream
from tests.capacities import small_engine
from tests.strategies import batch_of

START = 1_000_000
Told = Counter[tuple[int, tuple[int, ...]]]
rows_of_a_stream = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 2, 7]), st.sampled_from([1, 1, 2])), min_size=1, max_size=25
)
"""How many ms after the row before, and a value: many are alike, and many of one instant."""


def told(text: str, values: list[tuple[int, int]], step: int) -> Told:
    """(instant, row) of all that a query tells while rows (instant, value) come, so many in a step."""
    engine = small_engine()
    engine.create("CREATE STREAM s (v INTEGER, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')")
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    engine.register("q", text)
    engine.follow("q")
    found: Told = Counter()
    placed = [(0, offset, ts, (value, ts)) for offset, (ts, value) in enumerate(values)]
    last = values[-1][0] + 1_000
    placed += [(0, len(placed) + more, last + more, (9, last + more)) for more in (0, 1)]
    for first in range(0, len(placed), step):
        result = engine.ingest("s", batch_of(stream.schema, placed[first : first + step]), START)
        for changes in result.changes:
            columns = [column.to_pylist() for column in changes.table.columns]
            for at_ms, *row in zip(changes.at_ms, *columns, strict=True):
                if at_ms < last:
                    found[int(at_ms), tuple(row)] += 1
    return found


def at_instants(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Rows (instant, value) of rows (ms after the one before, value)."""
    instant, found = START, []
    for gap, value in rows:
        instant += gap
        found.append((instant, value))
    return found


@given(rows=rows_of_a_stream, step=st.integers(1, 30))
def test_select_star_gives_back_the_stream_with_its_duplicates(
    rows: list[tuple[int, int]], step: int
) -> None:
    values = at_instants(rows)
    assert told("SELECT v FROM s", values, step) == Counter((ts, (value,)) for ts, value in values)


@given(rows=rows_of_a_stream, step=st.integers(1, 30))
@pytest.mark.parametrize("word", ["ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("width", [0, 3])
def test_rows_that_equal_in_all_cancel_between_two_instants(
    word: str, width: int, rows: list[tuple[int, int]], step: int
) -> None:
    values = at_instants(rows)

    def window(instant: int) -> Counter[tuple[int, ...]]:
        return Counter((value,) for ts, value in values if instant - width <= ts <= instant)

    expected: Told = Counter()
    for instant in range(START, values[-1][0] + width + 2):
        now, before = window(instant), window(instant - 1)
        more = now - before if word == "ISTREAM" else before - now
        expected += Counter({(instant, row): count for row, count in more.items()})
    text = f"{word} (SELECT v FROM s [RANGE {width} MILLISECONDS])"
    assert told(text, values, step) == expected


def test_istream_of_a_selection_keeps_no_row_and_explain_says_so() -> None:
    engine = small_engine()
    engine.create("CREATE STREAM s (v INTEGER, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')")
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    texts = {
        "unbounded": "SELECT v FROM s WHERE v > 1",
        "both": "ISTREAM (SELECT v FROM s WHERE v > 1)",
        "window": "ISTREAM (SELECT v FROM s [RANGE 5 MILLISECONDS])",
        "removed": "DSTREAM (SELECT v FROM s)",
        "join": "ISTREAM (SELECT a.v FROM s a JOIN s b ON a.v = b.v)",
    }
    for name, text in texts.items():
        engine.register(name, text)
        engine.follow(name)
    rows = [(0, place, START + place, (place % 3, START + place)) for place in range(100)]
    engine.ingest("s", batch_of(stream.schema, rows), 2 * START)
    plans = {name: engine.explain(query_id=name) for name in texts}
    assert [name for name, plan in plans.items() if plan.as_from_now] == ["unbounded", "both"]
    for name in ("unbounded", "both"):
        waiting = [plans[name].graph]
        while waiting:
            operator = waiting.pop()
            assert operator.state.rows == 0
            waiting += operator.inputs
