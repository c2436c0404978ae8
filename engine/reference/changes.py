"""What came into an answer and what left it over a step, by the definition: the answer at every instant that
may matter, then the difference of each two in a row, as bags.

*   Where one of its streams took a step, the instants are those between NOW of the query before and after.
*   Where one of its tables did and there are streams, NOW stands: the instants are those at which the table
    is seen, everything else stays where it is, and all that changes, changes at NOW.
*   Over tables alone the instants are those of the one that took the step, or NOW before, if that is later.
*   Rows that are retained no more leave the answer: of a stream whose queries read nothing besides it at the
    instant at which NOW has gone on so far, else when the step is over, at the last of its instants.
*   Who asks for rows that come alone is not told of what retention does to an answer: a group that has lost a
    row is another one, but that is no news. So an instant then has two halves: what time does, with the rows
    that were retained before, is told, and what retention does after that is not.
*   Before a query has a NOW its answer is that over no rows. What is not moved by time, a table of the other
    kind, is there at once when there is one, and is told at 0.

Rows are equal where they are the same to the bit, so that whoever adds the changes up has the answer. Nothing
here is shared with :mod:`engine.changes`. Cost: one evaluation of the query for each of the instants.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.language.exits import leave
from engine.language.query import Query
from engine.model.changes import Occasion, Operator
from engine.reference.instants import instants
from engine.reference.retention import Reader, needed
from engine.reference.rows import Source, Values
from engine.reference.seen import At, Seen, now_of, seen_at
from engine.reference.stages import answer
from engine.reference.streams import turning
from engine.reference.values import exactly
from engine.reference.windows import BEGINNING_MS, members

Sources = Mapping[str, Source]


@dataclass(frozen=True, slots=True)
class Change:
    """A row that came (+1) or went (-1). copy: which one of equal rows, from 1; 0 where no row is meant."""

    weight: int
    at_ms: int
    values: Values
    copy: int


@dataclass(frozen=True, slots=True)
class Told:
    """Changes of one query, in the order in which they are to be read. now_ms: None before it has one."""

    query_id: str
    occasion: Occasion
    now_ms: int | None
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Way:
    """The sources before a step, with its rows and NOW, and once what is not retained has gone.

    name: of the source that it was over, None where it brought none further. readers: all that stands over
    it, where that tells at each instant what is retained (:func:`exact_retention`).
    """

    was: Sources
    moved: Sources
    after: Sources
    name: str | None
    readers: Sequence[Reader] | None


def operator_of(query: Query, sources: Sources) -> Operator:
    """The operator that the query's text names, else ISTREAM where rows never leave for it."""
    if query.operator is not None:
        return query.operator
    tables = {name for name in query.sources if sources[name].stream.is_table}
    return "changes" if leave(query, tables, "istream") else "istream"


def changes_of(query: Query, way: Way) -> list[Change]:
    """The changes of a standing query's answer over a step."""
    stops = _stops(query, way)
    operator = operator_of(query, way.after)
    found: list[Change] = []
    before, rows_before = stops.start, _rows(query, stops.start)
    for instant, at in stops.at.items():
        at_ms, rows = stops.told(instant), _rows(query, at)
        if operator == "istream":
            found += difference(rows_before, _rows(query, _still_retained(at, before)), at_ms)
        elif operator != "rstream":
            found += difference(rows_before, rows, at_ms)
        elif _members(query, at) != _members(query, before):
            found += whole(rows, at_ms, 1)
        before, rows_before = at, rows
    sign = {"istream": 1, "dstream": -1}.get(operator)
    return [change for change in found if sign is None or change.weight == sign]


def _rows(query: Query, at: At) -> list[Values]:
    return answer(query, at)[0]


def _still_retained(at: At, before: At) -> At:
    """The sources at an instant, and all that was retained before it."""
    return {
        name: replace(
            seen,
            source=replace(
                seen.source,
                retained_from=before[name].source.retained_from,
                base=before[name].source.base,
            ),
        )
        for name, seen in at.items()
    }


def difference(before: Sequence[Values], after: Sequence[Values], at_ms: int) -> list[Change]:
    """The changes from one bag to another: the rows that went, then those that came. Of equal rows the last
    copy goes first.
    """
    was, is_now = _counted(before), _counted(after)
    went = [
        Change(-1, at_ms, values, copy)
        for row, (values, count) in was.items()
        for copy in range(count, is_now.get(row, (values, 0))[1], -1)
    ]
    came = [
        Change(1, at_ms, values, copy)
        for row, (values, count) in is_now.items()
        for copy in range(was.get(row, (values, 0))[1] + 1, count + 1)
    ]
    return went + came


def whole(rows: Sequence[Values], at_ms: int, weight: int) -> list[Change]:
    """All rows of an answer come, or go."""
    return difference([], rows, at_ms) if weight > 0 else difference(rows, [], at_ms)


def _counted(rows: Sequence[Values]) -> dict[Hashable, tuple[Values, int]]:
    counts: dict[Hashable, tuple[Values, int]] = {}
    for row in rows:
        key = exactly(row)
        counts[key] = row, counts.get(key, (row, 0))[1] + 1
    return counts


# --- the instants of a step ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stops:
    """start: how the sources were seen before; at: and then, at each instant, in order; told: the instant
    as it is told.
    """

    start: At
    at: dict[int, At]
    told: Callable[[int], int]


def _stops(query: Query, way: Way) -> _Stops:
    was, moved, name = way.was, way.moved, way.name
    before, now = now_of(query, was), now_of(query, moved)
    start, end = seen_at(query, was, before), seen_at(query, way.after, now)
    if now is None:
        return _Stops(start, {}, lambda instant: instant)
    if name is None or name not in query.sources:
        return _Stops(start, {now: end}, lambda instant: now)
    if moved[name].stream.is_table:
        still = seen_at(query, moved, now)
        begin, until = start[name].instant, still[name].instant
        at: dict[int, At] = {
            instant: {**still, name: Seen(moved[name], instant)}
            for instant in _instants(query, [name], moved, begin, until)
        }
        at[now if until is None else until] = end
        if _has_stream(query, moved):
            return _Stops(start, at, lambda instant: now)
        return _Stops(start, at, lambda instant: instant if before is None else max(instant, before))
    at = {
        instant: _retained_at(seen_at(query, moved, instant), way, instant)
        for instant in _instants(query, query.sources, moved, before, now, way.readers)
    }
    at[now] = end
    return _Stops(start, at, lambda instant: 0 if instant == BEGINNING_MS + 1 else instant)


def _has_stream(query: Query, sources: Sources) -> bool:
    return any(not sources[name].stream.is_table for name in query.sources)


def _instants(
    query: Query,
    names: Sequence[str],
    sources: Sources,
    since: int | None,
    until: int | None,
    readers: Sequence[Reader] | None = None,
) -> list[int]:
    """The instants after ``since`` and up to ``until`` at which a scan of one of these sources may change."""
    if until is None:
        return []
    first = BEGINNING_MS + 1 if since is None else since + 1
    found = {first, until}
    for scan in query.scans():
        if scan.source in names:
            found |= set(instants(scan, sources[scan.source].rows))
    instants_of_elements = turning(query, seen_at(query, sources, until)) if query.has_streams else set()
    found |= instants_of_elements
    if readers is not None:
        (name,) = names
        keeps_ms = _keeps_ms(sources[name], readers)
        taken = {row.timestamp for row in sources[name].rows} | instants_of_elements
        found |= {instant + keeps_ms + 1 for instant in taken}
    return sorted(instant for instant in found if first <= instant <= until)


def _members(query: Query, at: At) -> list[frozenset[Hashable]]:
    """Which rows each scan gives."""
    return [members(scan, at[scan.source].source, at[scan.source].instant) for scan in query.scans()]


# --- retention on the way -----------------------------------------------------------------------------


def exact_retention(name: str, queries: Iterable[Query]) -> list[Reader] | None:
    """The scans over a stream, where it is known at each instant what it lets go of: where all that stands
    over it sees it at its own NOW; None otherwise.
    """
    reading = [query for query in queries if name in query.sources]
    if any(query.sources != (name,) for query in reading):
        return None
    return [Reader(None, list(query.scans_behind())) for query in reading]


def _retained_at(at: At, way: Way, instant: int) -> At:
    """The sources at an instant without the rows that have gone by then."""
    if way.readers is None or way.name is None:
        return at
    source = at[way.name].source
    readers = [replace(reader, instant=instant) for reader in way.readers]
    retained_from, _ = needed(replace(source, now=instant), readers)
    return {way.name: Seen(replace(source, retained_from=retained_from), instant)}


def _keeps_ms(source: Source, readers: Sequence[Reader]) -> int:
    """How far behind NOW rows of a stream are retained."""
    at_zero = [replace(reader, instant=0) for reader in readers]
    retained_from, _ = needed(replace(source, now=0, retained_from=None), at_zero)
    assert retained_from is not None
    return -retained_from
