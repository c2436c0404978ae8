"""An engine with two streams that are summarised, and exact queries beside those with a preference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import Heartbeat, Records
from tests.capacities import small_engine

Row = tuple[float | None, int, int]
"""(v, n, instant in ms)."""
ALL = 10**9

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
        self.engine = small_engine()
        self.offsets = {"s": 0, "t": 0}
        for name in ("s", "t"):
            self.engine.create(STREAM.format(name))
            self.engine.create(SUMMARY.format(name))
        for name, text in (("join", JOIN), ("selection", SELECTION)):
            self.engine.register(f"exact {name}", text.format("[RANGE 3 SECONDS]"))

    def bring(self, source: str, rows: Sequence[Row], grant: int = 0) -> None:
        first = self.offsets[source]
        self.offsets[source] += len(rows)
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
        """NaN as a text, since it equals nothing, and lists."""
        table = self.engine.view().snapshot(query_id).table
        told = [
            [repr(one) if one != one or isinstance(one, list) else one for one in column.to_pylist()]
            for column in table.columns
        ]
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
