"""The demo's board: questions about all flights together, each in SQL and as the plain computation beside it.

Groups, the first of each, closed windows, sessions, views, a derived stream, subqueries, joins, a set
operation. The plain computations go over the files' rows by Arrow's ``group_by`` and by loops: no code of the
engine is in them.
Answers are equal in values and order; only sketches, and doubles that are added in another order, may differ
by the share that ``within`` grants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.demo.flights import Data, Kept, Replayed
from broker.demo.plain import between, closed, groups, last, listed, only

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
ORIGINS = ("EWR", "JFK", "LGA")

Plain = Callable[..., pa.Table]
"""The answer from all rows of what it reads, each a Replayed or a Kept, at an instant (ms)."""

CREATES = (
    "CREATE VIEW late AS SELECT departs, carrier, origin, dest, dep_delay FROM flights WHERE dep_delay > 60",
    """CREATE STREAM hourly AS SELECT window_end, origin, COUNT(*) AS flights
       FROM TUMBLE(flights, INTERVAL '1' HOUR) GROUP BY window_end, origin""",
)
"""A view and a stream that the board's queries read."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A question of the board.

    drawn: how the screen shows it; None: not there, but compared at the end like all. Bars and columns are of
    the second column, under the names of the first. options: of the registration. within: for each column
    that need not be equal, by which share it may differ.
    """

    title: str
    sql: str
    plain: Plain
    reads: tuple[str, ...] = ("flights",)
    drawn: Literal["table", "bars", "columns"] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)
    count: ClassVar[bool] = False

    @property
    def asked(self) -> str:
        """What is registered."""
        return self.sql

    def expected(self, data: Data, now_ms: int | None) -> pa.Table:
        """Its answer at an instant, computed from the files."""
        return self.plain(*(data[name] for name in self.reads), -1 if now_ms is None else now_ms)


# --- the questions -------------------------------------------------------------------------------------


def _carriers(stream: Replayed, now_ms: int) -> pa.Table:
    found = groups(
        last(stream, now_ms, HOUR_MS), ["carrier"],
        ("*", "count", "flights"), ("dep_delay", "mean", "delay"), ("dep_delay", "max", "worst"),
    )  # fmt: skip
    return found.sort_by([("delay", "descending"), ("carrier", "ascending")])


def _airports(stream: Replayed, now_ms: int) -> pa.Table:
    found = groups(last(stream, now_ms, DAY_MS), ["dest"], ("*", "count", "flights"))
    return found.sort_by([("flights", "descending"), ("dest", "ascending")]).slice(0, 10)


def _days(stream: Replayed, now_ms: int) -> pa.Table:
    rows = closed(stream, now_ms, DAY_MS, DAY_MS, 14 * DAY_MS)
    found = groups(rows, ["window_start"], ("*", "count", "flights"), ("dep_delay", "count", "flown"))
    return found.rename_columns(["day", "flights", "flown"])


def _worst(stream: Replayed, now_ms: int) -> pa.Table:
    rows = last(stream, now_ms, DAY_MS)
    kept: list[dict[str, object]] = []
    ordered = sorted(
        rows.to_pylist(), key=lambda row: -1e9 if row["dep_delay"] is None else -row["dep_delay"]
    )
    for origin in ORIGINS:  # NULLs stand first where the order goes down
        kept += [row for row in ordered if row["origin"] == origin and row["dep_delay"] is not None][:3]
    return listed(kept, rows, "origin", "carrier", "flight", "dest", "dep_delay")


def _hours(stream: Replayed, now_ms: int) -> pa.Table:
    rows = last(stream, now_ms, 7 * DAY_MS)
    rows = only(rows, pc.greater(rows["dep_delay"], 60))
    rows = rows.append_column("hour", pc.cast(pc.hour(rows["departs"]), pa.int64()))
    return groups(rows, ["hour"], ("*", "count", "flights")).sort_by("hour")


def _cancelled(stream: Replayed, now_ms: int) -> pa.Table:
    found = groups(
        last(stream, now_ms, DAY_MS), ["origin"], ("*", "count", "planned"), ("dep_delay", "count", "flown")
    )
    cancelled = pc.subtract(found["planned"], found["flown"])
    return pa.table({"origin": found["origin"], "planned": found["planned"], "cancelled": cancelled}).sort_by(
        "origin"
    )


def _months(stream: Replayed, now_ms: int) -> pa.Table:
    rows = between(stream, 0, now_ms)
    month = pc.cast(pc.floor_temporal(rows["departs"], unit="month"), pa.timestamp("ms"))
    rows = rows.append_column("month", month)
    found: list[dict[str, object]] = []
    for one in pc.unique(month):
        part = rows.filter(pc.equal(rows["month"], one))
        found.append(
            {
                "month": one.as_py(),
                "aircraft": pc.count_distinct(part["tailnum"]).as_py(),
                "routes": len(set(zip(part["origin"].to_pylist(), part["dest"].to_pylist(), strict=True))),
                "spread": pc.stddev(part["dep_delay"], ddof=1).as_py(),
                "tenth": pc.quantile(part["dep_delay"], 0.9)[0].as_py(),
                "miles": pc.sum(part["distance"]).as_py(),
            }
        )
    types = [pa.timestamp("ms"), pa.int64(), pa.int64(), pa.float64(), pa.float64(), pa.int64()]
    names = ["month", "aircraft", "routes", "spread", "tenth", "miles"]
    return pa.Table.from_pylist(found, pa.schema(list(zip(names, types, strict=True))))


def _sessions(stream: Replayed, now_ms: int) -> pa.Table:
    """Runs of flights of each aircraft, less than twelve hours between departures, over within two days."""
    gap = 12 * HOUR_MS
    rows = between(stream, 0, now_ms)
    ts = stream.ts_ms[: rows.num_rows]
    known = pc.is_valid(rows["tailnum"]).to_numpy()
    names = rows["tailnum"].combine_chunks().dictionary_encode()
    tails = names.indices.fill_null(-1).to_numpy()
    order = np.lexsort((ts, tails))
    order = order[known[order]]
    first = np.ones(len(order), bool)  # of a run: another aircraft, or a long rest
    first[1:] = (np.diff(tails[order]) != 0) | (np.diff(ts[order]) >= gap)
    begins = np.flatnonzero(first)
    lengths = np.diff(np.append(begins, len(order)))
    if not len(begins):
        return _runs([])
    ends = ts[order[begins + lengths - 1]] + gap
    miles = np.add.reduceat(rows["distance"].to_numpy()[order].astype(np.int64), begins)
    over = np.flatnonzero((ends - 1 <= now_ms) & (ends - 1 >= now_ms - 2 * DAY_MS))
    found = [
        (
            names.dictionary[int(tails[order[begins[at]]])].as_py(),
            int(ts[order[begins[at]]]),
            int(lengths[at]),
            int(miles[at]),
        )
        for at in over
    ]
    return _runs(sorted(found, key=lambda run: (-run[3], run[0], run[1]))[:10])


def _runs(found: list[tuple[str, int, int, int]]) -> pa.Table:
    types = {"tailnum": pa.string(), "began": pa.timestamp("ms"), "flights": pa.int64(), "miles": pa.int64()}
    return pa.table(
        {name: pa.array([run[at] for run in found], type_) for at, (name, type_) in enumerate(types.items())}
    )


def _latest(stream: Replayed, now_ms: int) -> pa.Table:
    rows = between(stream, 0, now_ms)
    carriers = rows["carrier"].to_pylist()
    places = {carrier: place for place, carrier in enumerate(carriers)}
    return rows.take(pa.array(sorted(places.values()), pa.int64())).select(
        ["carrier", "departs", "flight", "dest"]
    )


def _busiest(stream: Replayed, now_ms: int) -> pa.Table:
    rows = closed(stream, now_ms, HOUR_MS, 6 * HOUR_MS, 2 * DAY_MS)
    found = groups(rows, ["window_start", "window_end"], ("*", "count", "flights"))
    return found.sort_by([("flights", "descending"), ("window_end", "ascending")]).slice(0, 5)


def _hourly(stream: Replayed, now_ms: int) -> pa.Table:
    rows = closed(stream, now_ms, HOUR_MS, HOUR_MS, None)
    hours = groups(rows, ["window_end", "origin"], ("*", "count", "flights"))
    found = groups(hours, ["origin"], ("flights", "max", "most"), ("flights", "mean", "mean"))
    return found.sort_by("origin")


def _troubled(stream: Replayed, now_ms: int) -> pa.Table:
    day = last(stream, now_ms, DAY_MS)
    gone = groups(only(day, pc.is_null(day["dep_delay"])), ["dest"], ("*", "count", "n"))
    gone = only(gone, pc.greater_equal(gone["n"], 2))
    rows = last(stream, now_ms, 6 * HOUR_MS)
    rows = only(rows, pc.is_in(rows["dest"], pc.unique(gone["dest"])))
    return rows.select(["departs", "carrier", "flight", "dest", "dep_delay"])


def _reliable(stream: Replayed, now_ms: int) -> pa.Table:
    rows = last(stream, now_ms, DAY_MS)
    bad = set(only(rows, pc.is_null(rows["dep_delay"]))["carrier"].to_pylist())
    found = [carrier for carrier in pc.unique(rows["carrier"]).to_pylist() if carrier not in bad]
    return pa.table({"carrier": pa.array(sorted(found), pa.string())})


def _routes(stream: Replayed, now_ms: int) -> pa.Table:
    rows = last(stream, now_ms, 2 * HOUR_MS)
    seen = dict.fromkeys(zip(rows["origin"].to_pylist(), rows["dest"].to_pylist(), strict=True))
    return pa.table(
        {
            "origin": pa.array([origin for origin, _ in seen], pa.string()),
            "dest": pa.array([dest for _, dest in seen], pa.string()),
        }
    )


def _weather(stream: Replayed, now_ms: int) -> pa.Table:
    step = 6 * HOUR_MS
    found = groups(
        last(stream, now_ms // step * step, DAY_MS), ["origin"],
        ("temp", "min", "coldest"), ("temp", "max", "warmest"), ("wind_speed", "mean", "wind"),
    )  # fmt: skip
    return found.sort_by("origin")


def _itineraries(stream: Replayed, now_ms: int) -> pa.Table:
    found: dict[str, list[str]] = {}
    rows = last(stream, now_ms, 2 * DAY_MS)
    for tail, dest in zip(rows["tailnum"].to_pylist(), rows["dest"].to_pylist(), strict=True):
        if tail is not None:
            found.setdefault(tail, []).append(dest)
    busy = sorted(((t, d) for t, d in found.items() if len(d) >= 3), key=lambda one: (-len(one[1]), one[0]))
    return pa.table(
        {
            "tailnum": pa.array([tail for tail, _ in busy[:5]], pa.string()),
            "first": pa.array([dests[0] for _, dests in busy[:5]], pa.string()),
            "flown": pa.array([dests for _, dests in busy[:5]], pa.list_(pa.string())),
        }
    )


def _left(stream: Replayed, now_ms: int) -> pa.Table:
    rows = last(stream, now_ms, 6 * HOUR_MS)
    flown = rows.filter(pc.is_valid(rows["dep_delay"])).to_pylist()
    newark = {row["tailnum"] for row in flown if row["origin"] == "EWR"}
    tails = dict.fromkeys(row["tailnum"] for row in flown if row["origin"] == "JFK")
    return pa.table({"tailnum": pa.array([tail for tail in tails if tail not in newark], pa.string())})


def _july(stream: Replayed, now_ms: int) -> pa.Table:
    begin = 1_372_896_000_000  # 2013-07-04
    rows = between(stream, begin, min(now_ms, begin + DAY_MS))
    return groups(rows, ["origin"], ("*", "count", "flights"), ("dep_delay", "mean", "delay"))


def _december(stream: Replayed, now_ms: int) -> pa.Table:
    rows = between(stream, 1_385_856_000_000, now_ms)  # 2013-12-01
    found = groups(rows, ["carrier"], ("distance", "sum", "miles"), ("tailnum", "count_distinct", "aircraft"))
    return found.sort_by([("miles", "descending"), ("carrier", "ascending")])


def _day_before(stream: Replayed, now_ms: int) -> pa.Table:
    rows = between(stream, now_ms - 2 * DAY_MS, now_ms - DAY_MS)
    return groups(rows, ["origin"], ("*", "count", "flights")).sort_by("origin")


def _winds(flights: Replayed, weather: Replayed, now_ms: int) -> pa.Table:
    wind: dict[object, list[float | None]] = {}
    for row in last(weather, now_ms, 2 * DAY_MS).to_pylist():
        wind.setdefault((row["origin"], row["at"]), []).append(row["wind_speed"])
    rows = last(flights, now_ms, DAY_MS)
    hours = pc.floor_temporal(rows["departs"], unit="hour").to_pylist()
    pairs = [
        (place, one)
        for place, key in enumerate(zip(rows["origin"].to_pylist(), hours, strict=True))
        for one in wind.get(key, [])
    ]
    rows = rows.take(pa.array([place for place, _ in pairs], pa.int64()))
    rows = rows.append_column("wind", pa.array([one for _, one in pairs], pa.float64()))
    found = groups(
        rows, ["origin"], ("*", "count", "flights"), ("dep_delay", "mean", "delay"), ("wind", "mean", "wind")
    )
    return found.sort_by("origin")


def _storms(flights: Replayed, weather: Replayed, now_ms: int) -> pa.Table:
    """The reports are looked up backwards from each flight."""
    reports = between(weather, 0, now_ms)
    at = {origin: [row for row in reports.to_pylist() if row["origin"] == origin] for origin in ORIGINS}
    rows = last(flights, now_ms, DAY_MS)
    names = ["departs", "carrier", "flight", "origin", "dep_delay", "at", "wind_speed", "visib"]
    found: list[dict[str, object]] = []
    for row in only(rows, pc.greater(rows["dep_delay"], 30)).to_pylist():
        report = next((one for one in reversed(at[row["origin"]]) if one["at"] <= row["departs"]), None)
        if report is None:
            continue
        fog = report["visib"] is not None and report["visib"] < 5
        if fog or (report["wind_speed"] is not None and report["wind_speed"] > 18):
            found.append({name: (report | row)[name] for name in names})
    fields = [(rows if name in rows.column_names else reports).schema.field(name) for name in names]
    return pa.Table.from_pylist(found, pa.schema(fields))


def _makers(flights: Replayed, planes: Kept, now_ms: int) -> pa.Table:
    makers = {row["tailnum"]: row for row in planes.table.to_pylist()}
    seats: dict[str, list[int]] = {}
    for tail in last(flights, now_ms, DAY_MS)["tailnum"].to_pylist():
        if tail in makers:
            seats.setdefault(makers[tail]["manufacturer"], []).append(makers[tail]["seats"])
    best = sorted(
        ((maker, sum(one), len(one)) for maker, one in seats.items()), key=lambda one: (-one[1], one[0])
    )
    types = {"manufacturer": pa.string(), "seats": pa.int64(), "flights": pa.int64()}
    return pa.table(
        {
            name: pa.array([one[at] for one in best[:8]], type_)
            for at, (name, type_) in enumerate(types.items())
        }
    )


def _unknown(flights: Replayed, planes: Kept, now_ms: int) -> pa.Table:
    known = set(planes.table["tailnum"].to_pylist())
    rows = last(flights, now_ms, 7 * DAY_MS)
    rows = rows.filter(pa.array([tail not in known for tail in rows["tailnum"].to_pylist()], pa.bool_()))
    return groups(rows, ["carrier"], ("*", "count", "flights")).sort_by(
        [("flights", "descending"), ("carrier", "ascending")]
    )


EAGER = {"maintenance": "eager"}

BOARD = (
    Tile(
        "carriers, last hour",
        "SELECT carrier, COUNT(*) AS flights, AVG(dep_delay) AS delay, MAX(dep_delay) AS worst"
        " FROM flights [RANGE 1 HOUR] GROUP BY carrier ORDER BY delay DESC NULLS LAST, carrier",
        _carriers, drawn="table", options=EAGER,
    ),
    Tile(
        "top ten airports, last day",
        "SELECT dest, COUNT(*) AS flights FROM flights [RANGE 1 DAY]"
        " GROUP BY dest ORDER BY flights DESC, dest LIMIT 10",
        _airports, drawn="bars", options=EAGER,
    ),
    Tile(
        "seats flown by manufacturer, last day: flights with the table of aircraft",
        "SELECT p.manufacturer, SUM(p.seats) AS seats, COUNT(*) AS flights FROM flights [RANGE 1 DAY] f"
        " JOIN planes p ON p.tailnum = f.tailnum"
        " GROUP BY p.manufacturer ORDER BY seats DESC, p.manufacturer LIMIT 8",
        _makers, reads=("flights", "planes"), drawn="bars",
    ),
    Tile(
        "delays and the wind of their hour, last day: flights with the weather",
        "SELECT f.origin, COUNT(*) AS flights, AVG(f.dep_delay) AS delay, AVG(w.wind_speed) AS wind"
        " FROM flights [RANGE 1 DAY] f JOIN weather [RANGE 2 DAYS] w"
        " ON w.origin = f.origin AND w.at = DATE_TRUNC('hour', f.departs)"
        " GROUP BY f.origin ORDER BY f.origin",
        _winds, reads=("flights", "weather"), drawn="table", within={"wind": 1e-12},
    ),
    Tile(
        "late in wind or fog, last day: flights with the latest report before",
        "SELECT f.departs, f.carrier, f.flight, f.origin, f.dep_delay, w.at, w.wind_speed, w.visib"
        " FROM flights [RANGE 1 DAY] f ASOF JOIN weather w ON w.origin = f.origin AND f.departs >= w.at"
        " WHERE f.dep_delay > 30 AND (w.visib < 5 OR w.wind_speed > 18)",
        _storms, reads=("flights", "weather"),
    ),
    Tile(
        "flights of aircraft that the table does not have, last week",
        "SELECT f.carrier, COUNT(*) AS flights FROM flights [RANGE 7 DAYS] f"
        " LEFT JOIN planes p ON p.tailnum = f.tailnum WHERE p.tailnum IS NULL"
        " GROUP BY f.carrier ORDER BY flights DESC, f.carrier",
        _unknown, reads=("flights", "planes"),
    ),
    Tile(
        "flights a day, two weeks",
        "SELECT window_start AS day, COUNT(*) AS flights, COUNT(dep_delay) AS flown"
        " FROM TUMBLE(flights, INTERVAL '1' DAY) [RANGE 14 DAYS] GROUP BY window_start",
        _days, drawn="columns",
    ),
    Tile(
        "the three latest of each airport, last day",
        "SELECT origin, carrier, flight, dest, dep_delay FROM"
        " (SELECT *, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY dep_delay DESC NULLS LAST) AS place"
        " FROM flights [RANGE 1 DAY]) WHERE place <= 3 AND dep_delay IS NOT NULL"
        " ORDER BY origin, place",
        _worst, drawn="table",
    ),
    Tile(
        "over an hour late by hour (UTC), last week, from a view",
        "SELECT EXTRACT(HOUR FROM departs) AS hour, COUNT(*) AS flights FROM late [RANGE 7 DAYS]"
        " GROUP BY hour ORDER BY hour",
        _hours, drawn="columns",
    ),
    Tile(
        "cancelled, last day",
        "SELECT origin, COUNT(*) AS planned, COUNT(*) FILTER (WHERE dep_delay IS NULL) AS cancelled"
        " FROM flights [RANGE 1 DAY] GROUP BY origin ORDER BY origin",
        _cancelled, drawn="table",
    ),
    Tile(
        "the months, with sketches",
        "SELECT DATE_TRUNC('month', departs) AS month, APPROX_COUNT_DISTINCT(tailnum) AS aircraft,"
        " COUNT(DISTINCT origin || '-' || dest) AS routes, STDDEV(dep_delay) AS spread,"
        " APPROX_QUANTILE(dep_delay, 0.9) AS tenth, SUM(distance) AS miles FROM flights GROUP BY month",
        _months, within={"aircraft": 0.1, "spread": 1e-9, "tenth": 0.1},
    ),
    Tile(
        "aircraft that flew furthest without a rest of twelve hours",
        "SELECT tailnum, window_start AS began, COUNT(*) AS flights, SUM(distance) AS miles"
        " FROM SESSION(flights PARTITION BY tailnum, INTERVAL '12' HOUR) [RANGE 2 DAYS]"
        " WHERE tailnum IS NOT NULL GROUP BY tailnum, window_start, window_end"
        " ORDER BY miles DESC, tailnum, began LIMIT 10",
        _sessions,
    ),
    Tile(
        "the last flight of each carrier",
        "SELECT carrier, departs, flight, dest FROM flights [PARTITION BY carrier ROWS 1]",
        _latest,
    ),
    Tile(
        "the busiest six hours of two days",
        "SELECT window_start, window_end, COUNT(*) AS flights"
        " FROM HOP(flights, INTERVAL '1' HOUR, INTERVAL '6' HOUR) [RANGE 2 DAYS]"
        " GROUP BY window_start, window_end ORDER BY flights DESC, window_end LIMIT 5",
        _busiest,
    ),
    Tile(
        "the busiest hour so far, from a stream derived by a query",
        "SELECT origin, MAX(flights) AS most, AVG(flights) AS mean FROM hourly"
        " GROUP BY origin ORDER BY origin",
        _hourly,
    ),
    Tile(
        "flights to where two were cancelled today",
        "SELECT departs, carrier, flight, dest, dep_delay FROM flights [RANGE 6 HOURS] WHERE dest IN"
        " (SELECT dest FROM flights [RANGE 1 DAY] WHERE dep_delay IS NULL"
        " GROUP BY dest HAVING COUNT(*) >= 2)",
        _troubled,
    ),
    Tile(
        "carriers that cancelled nothing today",
        "SELECT DISTINCT carrier FROM flights [RANGE 1 DAY] f WHERE NOT EXISTS"
        " (SELECT * FROM flights [RANGE 1 DAY] g WHERE g.carrier = f.carrier AND g.dep_delay IS NULL)"
        " ORDER BY carrier",
        _reliable,
    ),
    Tile(
        "routes flown in two hours", "SELECT DISTINCT origin, dest FROM flights [RANGE 2 HOURS]", _routes
    ),
    Tile(
        "aircraft that left JFK but not EWR, last six hours",
        "SELECT tailnum FROM flights [RANGE 6 HOURS] WHERE origin = 'JFK' AND dep_delay IS NOT NULL"
        " EXCEPT SELECT tailnum FROM flights [RANGE 6 HOURS] WHERE origin = 'EWR' AND dep_delay IS NOT NULL",
        _left,
    ),
    Tile(
        "the weather of a day, every six hours",
        "SELECT origin, MIN(temp) AS coldest, MAX(temp) AS warmest, AVG(wind_speed) AS wind"
        " FROM weather [RANGE 1 DAY SLIDE 6 HOURS] GROUP BY origin ORDER BY origin",
        _weather, reads=("weather",), within={"wind": 1e-12},
    ),
    Tile(
        "where the busiest aircraft went in two days",
        "SELECT tailnum, FIRST(dest) AS first, ARRAY_AGG(dest) AS flown FROM flights [RANGE 2 DAYS]"
        " WHERE tailnum IS NOT NULL GROUP BY tailnum HAVING COUNT(*) >= 3"
        " ORDER BY COUNT(*) DESC, tailnum LIMIT 5",
        _itineraries,
    ),
    Tile(
        "Independence Day",
        "SELECT origin, COUNT(*) AS flights, AVG(dep_delay) AS delay FROM flights GROUP BY origin"
        " BEGIN TIMESTAMP '2013-07-04' END TIMESTAMP '2013-07-05'",
        _july,
    ),
    Tile(
        "miles since December began",
        "SELECT carrier, SUM(distance) AS miles, COUNT(DISTINCT tailnum) AS aircraft FROM flights"
        " GROUP BY carrier BEGIN TIMESTAMP '2013-12-01' END NOW ORDER BY miles DESC, carrier",
        _december,
    ),
    Tile(
        "the day before, for comparison",
        "SELECT origin, COUNT(*) AS flights FROM flights GROUP BY origin"
        " BEGIN NOW - 2 DAYS END NOW - 1 DAY ORDER BY origin",
        _day_before,
    ),
)  # fmt: skip
