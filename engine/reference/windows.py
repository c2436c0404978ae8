"""The rows that a scan gives at an instant: window clauses, table functions, predicate.

Written over the list of all rows that ever entered. A row that is not retained is in no answer, and an answer
that would need one says from when it is complete.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from engine.language.query import Scan
from engine.model.expressions import Expression
from engine.reference.expressions import evaluate
from engine.reference.rows import Placed, Row, Source, Values
from engine.reference.values import ERROR, Identity, identity
from engine.windows.assignment import Hop, Session
from engine.windows.clauses import RowWindow, TimeWindow

BEGINNING_MS = -(2**63)


@dataclass(frozen=True, slots=True)
class Held:
    """What a scan gives. complete_from: as of an answer, None where nothing is missing."""

    rows: list[Placed]
    complete_from: int | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """A row in one window of a table function."""

    end: int
    start: int
    ordinal: int
    values: Values

    @property
    def instant(self) -> int:
        return self.end - 1


def reach_ms(scan: Scan) -> int | None:
    """How far behind NOW rows must be retained for a scan, None where time says nothing.

    A time window reaches as far as it begins. So that a window of a table function has all of its rows when
    it closes, TUMBLE and HOP keep a window that lies as far back as the clause reaches, at least the last
    one that closed; a session keeps its last row until it closes.
    """
    clause = scan.window.reach_ms if isinstance(scan.window, TimeWindow) else None
    match scan.assignment:
        case None:
            return clause
        case Hop(size, slide):
            return size + max(slide, clause or 0)
        case Session(gap):
            return gap + (clause or 0)


def width_of(scan: Scan, source: Source) -> int:
    """How many columns a scan gives."""
    return len(source.stream.schema) + (2 if scan.assignment is not None else int(scan.history))


def scan(scan: Scan, source: Source, instant: int | None) -> Held:
    """The rows of a scan at an instant, None before the stream has a NOW."""
    if instant is None:
        return Held([])
    if source.stream.is_table:
        return _table(scan, source, instant)
    if scan.assignment is not None:
        return _assigned(scan, source, instant)
    window = scan.window
    if isinstance(window, TimeWindow):
        held = _time(window, source, instant)
    elif window.plain:
        held = _rows(window, source, instant)
    else:
        held = _keyed(window, source, instant)
    kept = [row for row in held.rows if _accepts(scan.predicate, source, row)]
    return Held(kept, held.complete_from)


def members(over: Scan, source: Source, instant: int | None) -> frozenset[Hashable]:
    """Which rows a scan gives: the same only while no row comes into it or leaves it, whatever they hold."""
    if instant is None:
        return frozenset()
    if source.stream.is_table:
        return frozenset(
            (row.timestamp, row.partition, row.offset) for row in _versions(over, source, instant)
        )
    if over.assignment is not None:
        assigned, _ = _held(over, source, instant)
        return frozenset((row.ordinal, row.start, row.end) for row in assigned)
    return frozenset(row.ordinal for row in scan(over, source, instant).rows)


def _holds(predicate: Expression | None, values: Values) -> bool:
    return predicate is None or evaluate(predicate, values) is True


def _accepts(predicate: Expression | None, source: Source, placed: Placed) -> bool:
    assert placed.moment is not None
    timestamp, partition, offset = placed.moment
    return _holds(predicate, source.read(Row(timestamp, partition, offset, placed.values)))


def _visible(source: Source, instant: int) -> list[tuple[int, Row]]:
    """All rows that ever entered up to an instant, with their ordinals."""
    numbered = enumerate(source.rows, source.first)
    return [(ordinal, row) for ordinal, row in numbered if row.timestamp <= instant]


def _placed(rows: Sequence[tuple[int, Row]]) -> list[Placed]:
    return [Placed(ordinal, row.values, (row.timestamp, row.partition, row.offset)) for ordinal, row in rows]


def _since(source: Source) -> int:
    """The instant from which all rows are there."""
    return BEGINNING_MS if source.retained_from is None else source.retained_from


def gone_before(source: Source) -> int | None:
    """The instant before which rows are gone, or never came; None: all are there."""
    known = [] if source.complete_from is None else [source.complete_from]
    if source.first_at_or_after(_since(source)) > 0 or source.lacks:
        known.append(_since(source))
    return max(known, default=None)


# --- window clauses -----------------------------------------------------------------------------------


def _time(window: TimeWindow, source: Source, instant: int) -> Held:
    retained_from = _since(source)
    begin, end = window.bounds_ms(instant)
    gone = gone_before(source)
    complete = gone is None or (begin is not None and begin >= gone)
    first = retained_from if begin is None else max(begin, retained_from)
    rows = [(o, row) for o, row in _visible(source, instant) if first <= row.timestamp <= end]
    return Held(_placed(rows), None if complete else gone)


def _rows(window: RowWindow, source: Source, instant: int) -> Held:
    visible = _visible(source, instant)
    wanted = len(visible) - window.rows
    rows = visible[max(wanted, source.base, 0) :]
    complete_from = source.complete_from
    if (source.base == 0 and not source.lacks) or wanted >= source.base:
        if complete_from is None or (wanted >= source.base and rows[0][1].timestamp >= complete_from):
            return Held(_placed(rows))
        return Held(_placed(rows), complete_from)
    kept = source.rows[source.base :]
    oldest = kept[0].timestamp if kept else instant + 1
    return Held(_placed(rows), oldest if complete_from is None else max(oldest, complete_from))


def _keyed(window: RowWindow, source: Source, instant: int) -> Held:
    """The last rows of each key, or those where a filter is TRUE, among what is retained."""
    retained_from = _since(source)
    candidates = [
        (ordinal, row)
        for ordinal, row in _visible(source, instant)
        if row.timestamp >= retained_from and _holds(window.filter, source.read(row))
    ]
    groups: dict[Identity, list[tuple[int, Row]]] = {}
    for ordinal, row in candidates:
        groups.setdefault(_key(window.keys, row.values), []).append((ordinal, row))
    rows = sorted(pair for members in groups.values() for pair in members[-window.rows :])
    full = not window.keys and len(rows) == window.rows
    if full and source.complete_from is not None:
        full = rows[0][1].timestamp >= source.complete_from
    return Held(_placed(rows), None if full else gone_before(source))


def _key(keys: Sequence[Expression], values: Values) -> Identity:
    """A key that is an error counts as NULL."""
    outcomes = [evaluate(key, values) for key in keys]
    return identity([None if outcome is ERROR else outcome for outcome in outcomes])


# --- tables -------------------------------------------------------------------------------------------


def _table(scan: Scan, source: Source, instant: int) -> Held:
    """The last version of each key at an instant, unless it says that the key is deleted; of a history scan
    all versions. Rows are not numbered.
    """
    placed = [Placed(None, _of_version(scan, row)) for row in _versions(scan, source, instant)]
    complete = scan.history or not lacks_versions(source, instant)
    return Held(placed, None if complete else source.retained_from)


def _versions(scan: Scan, source: Source, instant: int) -> list[Row]:
    """The versions that a scan of a table gives."""
    gone = gone_versions(source)
    visible = [row for place, (_, row) in enumerate(_visible(source, instant)) if place not in gone]
    if not scan.history:
        latest = {source.key_of(row): row for row in visible}
        visible = [row for row in sorted(latest.values()) if not row.deleted]
    return [row for row in visible if _holds(scan.predicate, source.read(row))]


def _of_version(scan: Scan, row: Row) -> Values:
    return (*row.values, row.deleted) if scan.history else row.values


def lacks_versions(source: Source, instant: int) -> bool:
    """Whether versions that a table had at an instant may be gone."""
    return instant < _since(source) and bool(gone_versions(source))


def gone_versions(source: Source) -> set[int]:
    """The places of versions that are in no answer: the next one of the key, or a deletion itself, is no
    later than what is retained.
    """
    since = _since(source)
    found = set()
    next_of: dict[Identity, Row] = {}
    for place, row in reversed(list(enumerate(source.rows))):
        follower = next_of.get(source.key_of(row))
        if (row.deleted and row.timestamp <= since) or (follower is not None and follower.timestamp <= since):
            found.add(place)
        next_of[source.key_of(row)] = row
    return found


# --- table functions ----------------------------------------------------------------------------------


def _assigned(scan: Scan, source: Source, instant: int) -> Held:
    """Rows in the closed windows of a table function, those that the clause behind it holds.

    The predicate chooses the rows that the function sees. They are not numbered.
    """
    held, whole = _held(scan, source, instant)
    rows = [Placed(None, (*row.values, row.start, row.end)) for row in held]
    return Held(rows, None if whole else gone_before(source))


def _held(scan: Scan, source: Source, instant: int) -> tuple[list[Assigned], bool]:
    """The rows that a table function gives, and whether none can be missing, were some let go of."""
    retained_from = _since(source)
    assert scan.assignment is not None
    gone = BEGINNING_MS if (found := gone_before(source)) is None else found
    retained = [
        (ordinal, row)
        for ordinal, row in _visible(source, instant)
        if row.timestamp >= retained_from and _holds(scan.predicate, source.read(row))
    ]
    if isinstance(scan.assignment, Hop):
        assigned = _hops(scan.assignment, retained)
    else:
        assigned = _sessions(scan.assignment, retained)
    closed = [row for row in assigned if row.instant <= instant]
    closed.sort(key=lambda row: (row.end, row.start, row.ordinal))
    if isinstance(scan.window, RowWindow):
        return _last_of(scan.window, closed, _complete_from(scan.assignment, gone))
    begin, end = scan.window.bounds_ms(instant)
    held = [row for row in closed if (begin is None or begin <= row.instant) and row.instant <= end]
    return held, begin is not None and _all_there(scan.assignment, held, begin, end, gone)


def _last_of(window: RowWindow, rows: list[Assigned], complete_from: int) -> tuple[list[Assigned], bool]:
    """The last rows of each key, or those where a filter is TRUE, and whether no other row can be missing."""
    groups: dict[Identity, list[int]] = {}
    for place, row in enumerate(rows):
        values = (*row.values, row.start, row.end)
        if _holds(window.filter, values):
            groups.setdefault(_key(window.keys, values), []).append(place)
    held = [rows[place] for place in sorted(p for places in groups.values() for p in places[-window.rows :])]
    full = not window.keys and len(held) == window.rows
    return held, full and all(row.start >= complete_from for row in held)


def _complete_from(assignment: Hop | Session, gone: int) -> int:
    """Which windows have all of their rows: those that begin here or later.

    A session might go on from a row that is gone, if it begins less than the gap after it.
    """
    return gone if isinstance(assignment, Hop) else gone - 1 + assignment.gap_ms


def _all_there(assignment: Hop | Session, held: list[Assigned], begin: int, end: int, gone: int) -> bool:
    """Whether no row is missing of the windows whose last instant lies from begin to end."""
    complete_from = _complete_from(assignment, gone)
    if isinstance(assignment, Session):
        return begin >= complete_from and all(row.start >= complete_from for row in held)
    starts = range(begin + 1 - assignment.size_ms, end + 2 - assignment.size_ms)
    return all(
        start >= complete_from
        for start in starts
        if (start - assignment.offset_ms) % assignment.slide_ms == 0
    )


def _hops(hop: Hop, rows: Sequence[tuple[int, Row]]) -> list[Assigned]:
    """Each row once for each window that begins at or before it and ends after it."""
    found = []
    for ordinal, row in rows:
        start = hop.offset_ms + (row.timestamp - hop.offset_ms) // hop.slide_ms * hop.slide_ms
        while start + hop.size_ms > row.timestamp:
            found.append(Assigned(start + hop.size_ms, start, ordinal, row.values))
            start -= hop.slide_ms
    return found


def _sessions(session: Session, rows: Sequence[tuple[int, Row]]) -> list[Assigned]:
    """Each row in the session of its keys; a row as late as the session's end begins another."""
    sessions: dict[Identity, list[list[tuple[int, Row]]]] = {}
    for ordinal, row in rows:
        of_key = sessions.setdefault(_key(session.keys, row.values), [])
        if not of_key or row.timestamp >= of_key[-1][-1][1].timestamp + session.gap_ms:
            of_key.append([])
        of_key[-1].append((ordinal, row))
    return [
        Assigned(members[-1][1].timestamp + session.gap_ms, members[0][1].timestamp, ordinal, row.values)
        for of_key in sessions.values()
        for members in of_key
        for ordinal, row in members
    ]
