"""The figures of every query: what it costs, what it matches, how old its answer is.

One array a figure, with one place a row of :class:`broker.observe.query_list.columns.Columns`; NaN where a
figure is not known. Queries that share the same entities pay the same of them, so that is worked out once for
all of these (:meth:`engine.queries.entities.Report.paid`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broker.observe.entity_reading import EntityReading
from broker.observe.query_list.columns import ALL_ROWS, NO_SOURCE, Columns
from engine.model.batch import Int64Array
from engine.model.source import SourceName
from engine.queries.entities import Paid, Report
from engine.standing.query import SetKey, StandingQuery
from engine.stems.match_place import Place
from engine.store.matches.match_counts import HeldMatches
from engine.views.view import View

FIGURES = ("rows_per_s", "matches", "memory_bytes", "cpu_share", "age_ms", "behind_ms")
"""rows_per_s: rows of its sources that entered. matches: rows that are held and its predicates accept, summed
over these. memory_bytes, cpu_share: its own and its parts of what it shares. age_ms: how far its NOW is
behind the clock, behind_ms: behind the newest record of its sources.
"""
INTEGERS = frozenset({"matches", "memory_bytes", "age_ms", "behind_ms"})

FloatArray = npt.NDArray[np.float64]
Entered = Mapping[tuple[int, str], int]
"""Rows that entered a source of a shard since it came."""


@dataclass(frozen=True, slots=True)
class Figures:
    """As of an instant. entered: at the time at_s of the monotonic clock, for the rates of the next."""

    values: Mapping[str, FloatArray]
    at_s: float
    entered: Entered

    def of(self, row: int) -> dict[str, float | int | None]:
        """The figures of a row, as JSON has them."""
        found: dict[str, float | int | None] = {}
        for name, values in self.values.items():
            value = float(values[row]) if row < len(values) else np.nan
            found[name] = None if np.isnan(value) else int(value) if name in INTEGERS else value
        return found

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self.values.values())


def nothing(size: int) -> Figures:
    """Before anything is known."""
    return Figures({name: np.full(size, np.nan) for name in FIGURES}, 0.0, {})


def figures(
    columns: Columns, reading: EntityReading, views: Mapping[int, View], clock_ms: int, before: Figures
) -> Figures:
    """Work out the figures of all rows. before: what rates are counted from; a rate is unknown where
    ``before`` lacks its count.

    O(kinds of queries), and O(queries that share a join, are followed or keep an answer), and numpy over all.
    """
    found = {name: np.full(columns.size, np.nan) for name in FIGURES}
    entered = {
        (number, part.id.removeprefix("source/")): part.usage.rows_out
        for number, report in reading.reports.items()
        for part in report.parts
        if part.id.startswith("source/")
    }
    passed_s = reading.at_s - before.at_s
    rates = {
        place: max(0, rows - before.entered[place]) / passed_s
        for place, rows in entered.items()
        if place in before.entered and passed_s > 0
    }
    for number, report in reading.reports.items():
        _of_shard(columns, number, report, reading, views.get(number), clock_ms, rates, found)
    return Figures(found, reading.at_s, entered)


def _of_shard(
    columns: Columns,
    number: int,
    report: Report,
    reading: EntityReading,
    view: View | None,
    clock_ms: int,
    rates: Mapping[tuple[int, str], float],
    found: dict[str, FloatArray],
) -> None:
    rows = np.flatnonzero(columns.shard[: columns.size] == number)
    standing, total_ns = reading.standing[number], reading.cpu_ns

    def pay(where: Int64Array, paid: Paid) -> None:
        found["memory_bytes"][where] = paid.nbytes
        found["cpu_share"][where] = paid.cpu_ns / total_ns if total_ns else 0.0

    kinds = columns.set_key[rows].astype(np.int64) * 2 + columns.paused[rows]
    apart = {*report.group_of, *report.sink_of, *report.own}
    alone = np.zeros(columns.size, np.bool_)
    for name in apart:
        row, query = columns.rows.get(name), standing.get(name)
        if row is not None and query is not None and columns.shard[row] == number:
            alone[row] = True
            pay(np.array([row]), report.paid(query))
    for kind in np.unique(kinds[kinds >= 0]).tolist():
        of_kind = rows[kinds == kind]
        _pace(columns.sets.values[kind >> 1], bool(kind & 1), number, of_kind, view, clock_ms, rates, found)
        rest = of_kind[~alone[of_kind]]
        example = _example(columns, rest, standing, bool(kind & 1))
        if example is not None:
            pay(rest, report.paid(example))
    for name, answers_ns in reading.answers_ns.get(number, {}).items():
        row = columns.rows.get(name)
        if row is not None and columns.shard[row] == number and total_ns:
            found["cpu_share"][row] += answers_ns / total_ns
    if view is not None:
        _count_matches(columns, number, rows, view, found["matches"])


def _example(
    columns: Columns, rows: Int64Array, standing: Mapping[str, StandingQuery], paused: bool
) -> StandingQuery | None:
    """One of queries that pay the same; None: none of the first of them stands as it is listed."""
    for row in rows[:16].tolist():
        query = standing.get(columns.ids[row])
        if query is not None and query.paused == paused:
            return query
    return None


def _pace(
    key: SetKey,
    paused: bool,
    number: int,
    rows: Int64Array,
    view: View | None,
    clock_ms: int,
    rates: Mapping[tuple[int, str], float],
    found: dict[str, FloatArray],
) -> None:
    """Rates and ages of the queries over a set of sources; one that is paused has none."""
    if paused:
        return
    if all((number, source) in rates for source in key):
        found["rows_per_s"][rows] = sum(rates[number, source] for source in key)
    now_ms = None if view is None else view.now_over(key)
    if now_ms is not None:
        found["age_ms"][rows] = clock_ms - now_ms
        assert view is not None
        seen = [one for name in key if (one := view.source(name)) is not None]
        streams = [one for one in seen if not one.stream.is_table] or seen  # tables never hold NOW back
        newest = [one.latest_ms for one in streams if one.latest_ms is not None]
        if newest:
            found["behind_ms"][rows] = max(0, max(newest) - now_ms)


def _count_matches(columns: Columns, number: int, rows: Int64Array, view: View, matches: FloatArray) -> None:
    """Count the matches of a shard's queries; those whose place has another owner by now are left out."""
    counted: dict[SourceName, HeldMatches | None] = {}

    def held(source: SourceName) -> HeldMatches | None:
        if source not in counted:
            counted[source] = view.held_matches(source)
        return counted[source]

    of = columns.match_source[rows]
    for code in np.unique(of[of != NO_SOURCE]).tolist():
        found = held(columns.sources.values[code])
        if found is not None:
            mine = rows[of == code]
            places = columns.match_place[mine]
            matches[mine] = np.where(places == ALL_ROWS, found.rows, found.at(places))
    for row, several in columns.several.items():
        if columns.shard[row] == number:
            matches[row] = sum(_at(held(source), place) for source, place in several)


def _at(held: HeldMatches | None, place: Place) -> float:
    return np.nan if held is None else float(held.at(np.array([place]))[0])
