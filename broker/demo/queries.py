"""The demo's standing queries, each in SQL and as the plain computation that its answer is checked against.

Airports, carriers, routes, the weather, and a watch-list for each aircraft by its tail number: what the
users of an application about flights would each register for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, gt, lt
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.demo.flights import Data, Replayed
from tureen.texts import Template

DAY_MS = 86_400_000

Condition = tuple[str, str, Any]
"""(column, operator, value); the operators are = > < and IS NULL."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A query over a sliding window of ``days`` (None: since the beginning), all conditions true.

    kind: what the screen groups it by. count: the number of rows instead of the rows.
    """

    title: str
    kind: str
    stream: str
    columns: tuple[str, ...]
    days: int | None
    conditions: tuple[Condition, ...]
    count: bool = False
    options: ClassVar[Mapping[str, str]] = {}
    within: ClassVar[Mapping[str, float]] = {}

    @property
    def sql(self) -> str:
        return self._text([_literal(value) for _, _, value in self.conditions])

    @property
    def asked(self) -> str | Template:
        """What is registered: of a watch-list, as thousands of users have one, template and parameters."""
        if self.kind != "aircraft":
            return self.sql
        return Template(self._text(["?"] * len(self.conditions)), [value for _, _, value in self.conditions])

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of its stream satisfies all conditions."""
        return all(_holds(row[column], operator, value) for column, operator, value in self.conditions)

    def _text(self, values: Sequence[str]) -> str:
        window = "" if self.days is None else f" [RANGE {self.days} DAYS]"
        outputs = "COUNT(*) AS flights" if self.count else ", ".join(self.columns)
        where = " AND ".join(
            f"{column} IS NULL" if operator == "IS NULL" else f"{column} {operator} {value}"
            for (column, operator, _), value in zip(self.conditions, values, strict=True)
        )
        return f"SELECT {outputs} FROM {self.stream}{window} WHERE {where}"

    def expected(self, data: Data, now_ms: int | None) -> pa.Table:
        """Its answer at an instant, computed from the whole table. O(rows)."""
        stream = data[self.stream]
        assert isinstance(stream, Replayed)
        if now_ms is None:
            now_ms = -1
        end = int(np.searchsorted(stream.ts_ms, now_ms, side="right"))
        begin = 0
        if self.days is not None:
            begin = int(np.searchsorted(stream.ts_ms, now_ms - self.days * DAY_MS, side="left"))
        rows = stream.table.slice(begin, max(0, end - begin))
        kept = None
        for condition in self.conditions:
            mask = pc.fill_null(_mask(rows, condition), False)
            kept = mask if kept is None else pc.and_(kept, mask)
        if kept is not None:
            rows = rows.filter(kept)
        if self.count:
            return pa.table({"flights": pa.array([rows.num_rows], pa.int64())})
        return rows.select(list(self.columns))


def _literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _holds(mine: Any, operator: str, value: Any) -> bool:
    if mine is None or operator == "IS NULL":
        return mine is None and operator == "IS NULL"
    return bool({"=": eq, ">": gt, "<": lt}[operator](mine, value))


def _mask(rows: pa.Table, condition: Condition) -> pa.ChunkedArray:
    column, operator, value = condition
    if operator == "IS NULL":
        return pc.is_null(rows[column])
    return {"=": pc.equal, ">": pc.greater, "<": pc.less}[operator](rows[column], value)


LATE = ("departs", "carrier", "flight", "dest", "dep_delay")
WATCHED = ("departs", "carrier", "flight", "origin", "dest", "dep_delay", "arr_delay")
WEATHER = ("at", "origin", "temp", "wind_speed", "precip", "visib")


def headlines() -> list[Standing]:
    """The few whose answers the screen shows."""
    hour = ("dep_delay", ">", 60)
    shown = [
        Standing(
            f"{origin}: more than an hour late, last day", "airport", "flights", LATE, 1,
            (("origin", "=", origin), hour), count=True,
        )
        for origin in ("EWR", "JFK", "LGA")
    ]  # fmt: skip
    shown += [
        Standing(
            "cancelled in the last day", "airport", "flights", LATE, 1, (("dep_delay", "IS NULL", None),),
            count=True,
        ),
        Standing(
            "United, more than an hour late, last week", "carrier", "flights", LATE, 7,
            (("carrier", "=", "UA"), hour), count=True,
        ),
        Standing(
            "JFK to Los Angeles, more than 45 min late, last month", "route", "flights", LATE, 30,
            (("origin", "=", "JFK"), ("dest", "=", "LAX"), ("dep_delay", ">", 45)), count=True,
        ),
    ]  # fmt: skip
    return shown


def standing(flights: Replayed, wanted: int) -> list[Standing]:
    """``wanted`` queries: headlines first, then the few, then the aircraft that fly most.

    More than there are aircraft gives them further watch-lists, for delays of 1, 2, 3, ... minutes.
    """
    found = headlines()
    for query in _all(flights):
        if len(found) >= wanted:
            break
        found.append(query)
    return found[:wanted]


def _all(flights: Replayed) -> Iterator[Standing]:
    yield from _few(flights.table)
    tails = by_frequency(flights.table["tailnum"])
    for tail in tails:
        yield watch_list(tail)
    for minutes in range(1, 1_000):
        for tail in tails:
            conditions = (("tailnum", "=", tail), ("arr_delay", ">", minutes))
            yield Standing(
                f"aircraft {tail}, > {minutes} min", "aircraft", "flights", WATCHED, None, conditions
            )


def count_of_all(flights: Replayed) -> int:
    """How many there are with one watch-list an aircraft."""
    tails = len(by_frequency(flights.table["tailnum"]))
    return len(headlines()) + sum(1 for _ in _few(flights.table)) + tails


def watch_list(tail: str) -> Standing:
    """Every flight of an aircraft."""
    return Standing(f"aircraft {tail}", "aircraft", "flights", WATCHED, None, (("tailnum", "=", tail),))


def _few(table: pa.Table) -> Iterator[Standing]:
    for origin in ("EWR", "JFK", "LGA"):
        at = ("origin", "=", origin)
        for minutes in (15, 60, 180):
            yield Standing(
                f"{origin} > {minutes} min", "airport", "flights", LATE, 1, (at, ("dep_delay", ">", minutes))
            )
        yield Standing(
            f"{origin} cancelled", "airport", "flights", LATE, 1, (at, ("dep_delay", "IS NULL", None))
        )
        yield Standing(f"{origin} wind", "weather", "weather", WEATHER, 1, (at, ("wind_speed", ">", 20)))
        yield Standing(f"{origin} fog", "weather", "weather", WEATHER, 7, (at, ("visib", "<", 1)))
        yield Standing(f"{origin} rain", "weather", "weather", WEATHER, 7, (at, ("precip", ">", 0.1)))
        yield Standing(f"{origin} frost", "weather", "weather", WEATHER, 30, (at, ("temp", "<", 25)))
    for carrier in by_frequency(table["carrier"]):
        for days, minutes in ((1, 30), (7, 120)):
            conditions = (("carrier", "=", carrier), ("arr_delay", ">", minutes))
            title = f"{carrier} > {minutes} min, {days} d"
            yield Standing(title, "carrier", "flights", LATE, days, conditions)
    routes = table.group_by(["origin", "dest"]).aggregate([([], "count_all")])
    routes = routes.sort_by([("count_all", "descending"), ("origin", "ascending"), ("dest", "ascending")])
    for origin, dest in zip(routes["origin"].to_pylist(), routes["dest"].to_pylist(), strict=True):
        route = (("origin", "=", origin), ("dest", "=", dest), ("dep_delay", ">", 30))
        yield Standing(f"{origin}-{dest} > 30 min", "route", "flights", LATE, 7, route)


def by_frequency(column: pa.ChunkedArray) -> list[str]:
    """The values of a column, the most frequent first, NULL left out."""
    counted = pc.value_counts(pc.drop_null(column)).to_pylist()
    return [one["values"] for one in sorted(counted, key=lambda one: (-one["counts"], one["values"]))]
