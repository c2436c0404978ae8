"""Ten thousand dashboards: followed aggregates of one shape, a few for each aircraft.

Each says EMIT CHANGES, so that whenever a flight enters its week or leaves it, the changed groups are written
to the result topics. All are columns of one scan and one GROUP BY of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from broker.demo.flights import Data, Replayed
from broker.demo.plain import groups, last, only
from broker.demo.queries import DAY_MS, by_frequency
from tureen.texts import Template

FOLLOWED = 10_000
MINUTES = (0, 15, 60)
TEXT = (
    "SELECT origin, COUNT(*) AS flights, AVG(arr_delay) AS delay, MAX(arr_delay) AS worst "
    "FROM flights [RANGE 7 DAYS] WHERE tailnum = ? AND arr_delay > ? GROUP BY origin EMIT CHANGES"
)


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The late flights of an aircraft in the last week, by airport."""

    tail: str
    minutes: int
    count: ClassVar[bool] = False
    options: ClassVar[Mapping[str, str]] = {}
    within: ClassVar[Mapping[str, float]] = {"delay": 1e-12}

    @property
    def asked(self) -> Template:
        """What is registered."""
        return Template(TEXT, [self.tail, self.minutes])

    @property
    def sql(self) -> str:
        return TEXT.replace("?", f"'{self.tail}'", 1).replace("?", str(self.minutes), 1)

    def expected(self, data: Data, now_ms: int | None) -> pa.Table:
        """Its answer at an instant, computed from the whole table. O(rows)."""
        stream = data["flights"]
        assert isinstance(stream, Replayed)
        rows = last(stream, -1 if now_ms is None else now_ms, 7 * DAY_MS)
        rows = only(rows, pc.equal(rows["tailnum"], self.tail))
        rows = only(rows, pc.greater(rows["arr_delay"], self.minutes))
        return groups(
            rows,
            ["origin"],
            ("*", "count", "flights"),
            ("arr_delay", "mean", "delay"),
            ("arr_delay", "max", "worst"),
        )


def dashboards(flights: Replayed, wanted: int) -> list[Dashboard]:
    """``wanted`` of them, of the aircraft that fly most first."""
    return [one for one, _ in zip(_all(flights), range(wanted), strict=False)]


def _all(flights: Replayed) -> Iterator[Dashboard]:
    tails = by_frequency(flights.table["tailnum"])
    for minutes in MINUTES:
        for tail in tails:
            yield Dashboard(tail, minutes)
