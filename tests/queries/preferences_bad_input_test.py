"""Bad input that reaches running queries with a preference: values that are none, priorities that err, jumps
of the clock, summaries that go. What was found stays a part of the exact answer, and with time for all it is
the exact one; queries without a preference are as they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import DropSummary, Heartbeat, Records
from engine.model.summary import SummaryName
from tureen.errors import SummaryConflict, TureenError

Row = tuple[float | None, int, int]
"""(v, n, instant in ms)."""
ALL = 10**9
YEAR_MS = 366 * 86_400_000

STREAM = "CREATE STREAM {} (v DOUBLE, n INTEGER, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts') RETAIN 1 HOUR"
SUMMARY = (
    "CREATE SUMMARY of_{0} ON {0} (v) WITH GRANULARITY 1 SECOND AND COLLAPSE(2, 4) "
    "SETTINGS (buckets = 4, sketch_width = 8, zone_rows_min = 2)"
)
JOIN = "SELECT a.v AS v, a.n AS n, b.n AS m FROM s {0} a JOIN t {0} b ON a.v = b.v"
SELECTION = "SELECT v, n FROM s {0} WHERE n < 100"
COUNT = "SUMMARY.Estimate.Count"


def preferring(
    text: str, priority: str = "{}", order: str = "desc", window: str = " WINDOW 3 SECONDS"
) -> str:
    """``text`` with a priority of each source; ``{}`` in it: the estimate."""
    columns = ["a.v", "b.v"] if " JOIN " in text else ["v"]
    priorities = ", ".join(priority.format(f"{COUNT}({column})") for column in columns)
    return f"{text.format('')} WITH PREFERENCE {order} {priorities} FADE FACTOR 0.5{window}"


class World:
    """An engine with both streams summarised, and for each text the exact query beside."""

    def __init__(self) -> None:
        self.engine = Engine()
        self._offsets = {"s": 0, "t": 0}
        for name in ("s", "t"):
            self.engine.create(STREAM.format(name))
            self.engine.create(SUMMARY.format(name))
        for name, text in (("join", JOIN), ("selection", SELECTION)):
            self.engine.register(f"exact {name}", text.format("[RANGE 3 SECONDS]"))

    def bring(self, source: str, rows: Sequence[Row], grant: int = 0) -> None:
        first = self._offsets[source]
        self._offsets[source] += len(rows)
        v, n, ts = zip(*rows, strict=True)
        table = pa.table(
            {
                "v": pa.array(v, pa.float64(), from_pandas=False),
                "n": pa.array(n, pa.int32()),
                "ts": pa.array(ts, pa.timestamp("ms")),
            }
        )
        places = np.zeros(len(rows), np.int64)
        schema = self.engine.catalogue[source].schema
        batch = Batch.from_arrow(schema, table, places, first + np.arange(len(rows)), ts)
        self.engine._now(Records(SourceName(source), batch, {}, grant=grant), 0)

    def work(self, grant: int = ALL) -> None:
        self.engine._now(Heartbeat(SourceName("s"), grant=grant), 0)

    def rows(self, query_id: str) -> Counter[tuple[object, ...]]:
        """NaN as a text, since it equals nothing."""
        table = self.engine.view().snapshot(query_id).table
        told = [[repr(one) if one != one else one for one in column.to_pylist()] for column in table.columns]
        return Counter(zip(*told, strict=True))

    def check(self, query_id: str, *, whole: bool) -> None:
        """What was found is part of the exact answer, and says so; whole: it is that answer."""
        found, wanted = self.rows(query_id), self.rows(f"exact {query_id}")
        assert found <= wanted
        approximate = bool(self.engine.view().snapshot(query_id).approximation)
        assert approximate or found == wanted
        if whole:
            assert found == wanted
            assert wanted, "nothing to find"
            assert not approximate


NAN = float("nan")
ODD = [1.0, NAN, None, -0.0, 0.0, float("inf"), 1.0, NAN, None, 1e308, 5e-324, 1.0]


def odd(count: int, start_ms: int) -> list[Row]:
    return [(ODD[at % len(ODD)], at, start_ms + 40 * at) for at in range(count)]


@pytest.mark.parametrize("order", ["desc", "asc", "weighted"])
@pytest.mark.parametrize(
    "priority",
    ["{}", "{} / 0", "{} * CAST('NaN' AS DOUBLE)", "CASE WHEN {} > 1 THEN NULL ELSE 1 END", "-{}"],
    ids=["estimate", "error", "nan", "null", "negative"],
)
def test_priorities_that_are_no_numbers_and_odd_values_lose_nothing(order: str, priority: str) -> None:
    world = World()
    for name, text in (("join", JOIN), ("selection", SELECTION)):
        world.engine.register(name, preferring(text, priority, order))
    for start_ms in (0, 1_000, 2_000):
        for source in ("s", "t"):
            world.bring(source, odd(25, start_ms), grant=7)
        for name in ("join", "selection"):
            world.check(name, whole=False)
    world.work()
    for name in ("join", "selection"):
        world.check(name, whole=True)


@pytest.mark.parametrize("values", [lambda at: 3.0, float], ids=["one_value", "all_distinct"])
def test_rows_of_one_value_and_rows_that_all_differ(values: Callable[[int], float]) -> None:
    world = World()
    for name, text in (("join", JOIN), ("selection", SELECTION)):
        world.engine.register(name, preferring(text))
    for source in ("s", "t", "s", "t"):
        first = world._offsets[source]
        rows = [(values(at), at, 20 * at) for at in range(first, first + 50)]
        world.bring(source, rows, grant=20)
    world.check("join", whole=False)
    world.work()
    for name in ("join", "selection"):
        world.check(name, whole=True)


def test_clock_that_jumps_by_a_year_empties_the_summaries_and_queries_go_on() -> None:
    world = World()
    for name, text in (("join", JOIN), ("selection", SELECTION)):
        world.engine.register(name, preferring(text))
    for source in ("s", "t"):
        world.bring(source, odd(30, 0))
    for start_ms in (YEAR_MS, 2 * YEAR_MS):
        for source in ("s", "t"):
            world.bring(source, odd(30, start_ms), grant=3)
        world.check("join", whole=False)
    world.work()
    for name in ("join", "selection"):
        world.check(name, whole=True)


def test_refused_texts_leave_the_others_as_they_are() -> None:
    world = World()
    world.engine.register("join", preferring(JOIN))
    for text in (
        preferring(JOIN, window=" WINDOW 1 HOUR"),
        preferring(JOIN) + " FADE FACTOR 0.5",
        preferring(SELECTION).replace("SUMMARY", "of_t"),
        preferring(SELECTION + " LIMIT 3"),
    ):
        with pytest.raises(TureenError):
            world.engine.register("refused", text)
    for source in ("s", "t"):
        world.bring(source, odd(30, 0))
    world.work()
    world.check("join", whole=True)


@pytest.mark.parametrize("name", ["join", "selection"])
def test_summary_that_goes_while_a_query_uses_it(name: str) -> None:
    world = World()
    text = {"join": JOIN, "selection": SELECTION}[name]
    world.engine.register(name, preferring(text))
    for source in ("s", "t"):
        world.bring(source, odd(30, 0), grant=10)
    found = world.rows(name)
    with pytest.raises(SummaryConflict):
        world.engine._now(DropSummary(SummaryName("of_s")), 0)
    world.engine._now(DropSummary(SummaryName("of_s"), forced=True), 0)
    world.work()
    assert world.rows(name) == found, "what was found is kept, and nothing is looked for"
    for source in ("s", "t"):
        world.bring(source, odd(30, 500), grant=10)
    world.check(name, whole=False)
    with pytest.raises(TureenError):
        world.engine.register("another", preferring(text))
    world.engine.create(SUMMARY.format("s"))
    world.work()
    world.check(name, whole=True)
