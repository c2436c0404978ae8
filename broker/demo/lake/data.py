"""The demo's input as files, and what its answers have to be, computed plainly from the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from broker.demo.flights import Replayed, load
from broker.demo.plain import last

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
BROKEN = (
    ("2013-02-30 10:00:00", "EWR", "IAH", "UA", "1545", "N14228", "2", "11", "227", "1400"),
    ("2013-01-01 10:29:00", "LGA", "IAH", "UA", "1714", "N24211", "four", "20", "227", "1416"),
    ("2013-01-01 10:40:00", "NA", "MIA", "AA", "1141", "N619AA", "2", "33", "160", "1089"),
)
"""Rows that fit no flight: a date that is none, a delay that is no number, no airport."""

FLIGHTS_SQL = """\
CREATE STREAM flights (
    departs TIMESTAMP NOT NULL, origin STRING NOT NULL, dest STRING, carrier STRING, flight INTEGER,
    tailnum STRING, dep_delay INTEGER, arr_delay INTEGER, air_time INTEGER, distance INTEGER)
WITH (topic = 'flights', timestamp = 'departs', partitions = 1, idle_timeout = '2 seconds')
RETAIN 1 DAY"""
"""Only a day is kept at hand: what is older is the archive's."""

DAY_SQL = """\
SELECT origin, COUNT(*) AS flights, AVG(dep_delay) AS delay
FROM flights [RANGE 1 DAY SLIDE 1 HOUR]
GROUP BY origin
EMIT CHANGES"""
"""Stands while the flights come; its changes go to the result topic."""

WEEK_SQL = """\
SELECT carrier, COUNT(*) AS flights, COUNT(arr_delay) AS arrived, SUM(arr_delay) AS minutes
FROM flights [RANGE 7 DAYS]
GROUP BY carrier"""
"""Comes when all but the last day has gone from memory."""


@dataclass(frozen=True, slots=True)
class Flights:
    """The first days of 2013: ``stream`` holds what fits, the CSV file besides :data:`BROKEN`. statement:
    the file of :data:`FLIGHTS_SQL`.
    """

    stream: Replayed
    path: Path
    statement: Path

    @property
    def rows(self) -> int:
        return len(self.stream.ts_ms)

    @property
    def end_ms(self) -> int:
        """The last departure."""
        return int(self.stream.ts_ms[-1])


def written(directory: Path, days: int) -> Flights:
    """The flights of the first days as one CSV file with a header, NA for what is missing, and the stream.

    Raises DataMissing, OSError.
    """
    flights, _ = load()
    end_ms = int(flights.ts_ms[0]) // DAY_MS * DAY_MS + days * DAY_MS
    flights = flights.head(int(np.searchsorted(flights.ts_ms, end_ms)))
    path = directory / "flights.csv"
    names = flights.table.column_names
    texts = [pc.fill_null(pc.cast(column, pa.string()), "NA") for column in flights.table.columns]
    with path.open("wb") as file:
        pv.write_csv(pa.table(texts, names=names), file)
        broken = [pa.array(column, pa.string()) for column in zip(*BROKEN, strict=True)]
        pv.write_csv(pa.table(broken, names=names), file, pv.WriteOptions(include_header=False))
    statement = directory / "flights.sql"
    statement.write_text(FLIGHTS_SQL + "\n", encoding="utf-8")
    return Flights(flights, path, statement)


def of_a_day(flights: Replayed, now_ms: int) -> dict[str, tuple[int, float | None]]:
    """What :data:`DAY_SQL` answers at NOW: flights and mean delay by airport."""
    rows = last(flights, now_ms // HOUR_MS * HOUR_MS, DAY_MS)
    found = rows.group_by("origin").aggregate([([], "count_all"), ("dep_delay", "mean")])
    return {
        origin: (count, mean)
        for origin, count, mean in _tuples(found, "origin", "count_all", "dep_delay_mean")
    }


def of_a_week(flights: Replayed, now_ms: int) -> dict[str, tuple[int, int, int | None]]:
    """What :data:`WEEK_SQL` answers at NOW: flights, those that arrived and their minutes, by carrier."""
    rows = last(flights, now_ms, 7 * DAY_MS)
    found = rows.group_by("carrier").aggregate(
        [([], "count_all"), ("arr_delay", "count"), ("arr_delay", "sum")]
    )
    return {
        carrier: (count, arrived, minutes)
        for carrier, count, arrived, minutes in _tuples(
            found, "carrier", "count_all", "arr_delay_count", "arr_delay_sum"
        )
    }


def _tuples(table: pa.Table, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)
