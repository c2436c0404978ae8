"""Streams of subqueries: the changes of a relation from instant to instant, and a window over them.

The relation is evaluated at each instant at which it may be another than a millisecond before, over the rows
that are known and retained now. Elements of before what a source retains are gone with its rows. Its changes
are known for certain after the first instant from which on nothing is gone that its scans reach back to;
earlier ones are those of what is there, and an answer that holds such says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from engine.algebra.join.stage import Join
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.streamed.stage import Streamed
from engine.language.query import Query
from engine.model.sample import Sample
from engine.reference.expressions import evaluate
from engine.reference.instants import instants, of_window
from engine.reference.rows import Placed, Values
from engine.reference.samples import element_key, seeded_key
from engine.reference.seen import At, Seen
from engine.reference.values import ERROR, Identity, exactly, identity
from engine.reference.windows import gone_before, gone_versions, lacks_versions, members, scan
from engine.windows.clauses import TimeWindow

Answer = Callable[[Query, At], tuple[list[Values], int, int | None]]
"""The rows of a query, its errors, and from when on it is complete."""


@dataclass(frozen=True, slots=True)
class Elements:
    """complete_from: as of an answer."""

    rows: list[Placed]
    complete_from: int | None = None


def streamed(below: Query, stage: Streamed, at: At, answer: Answer) -> Elements:
    """The elements of a stream of changes that are in its window."""
    now = now_of(at)
    if now is None:
        return Elements([])
    floor = floor_of(at)
    elements = [one for one in _elements(below, stage, at, now, answer) if floor is None or one[0] >= floor]
    if stage.sample is not None:
        elements = _sampled(elements, stage.sample)
    rows, is_full = _held(stage, elements, now)
    _, _, complete_from = answer(below, at)
    known_from = None
    if complete(below, at):
        known_from = _known_from(below, at, now)
        if floor is not None:
            known_from = floor if known_from is None else max(known_from, floor)
    if known_from is not None and not _is_known(stage, rows, is_full, now, known_from):
        complete_from = known_from if complete_from is None else max(complete_from, known_from)
    return Elements(rows, complete_from)


def _sampled(elements: list[tuple[int, int, Values]], sample: Sample) -> list[tuple[int, int, Values]]:
    """The elements that a sample keeps."""
    found = []
    copies = Counter[Hashable]()
    for instant, number, values in elements:
        copy = copies[instant, exactly(values)]
        copies[instant, exactly(values)] += 1
        key = element_key(values, instant, copy)
        if sample.seed is not None:
            key = seeded_key(sample.seed, key)
        if key < sample.keys_below:
            found.append((instant, number, values))
    return found


def _is_known(stage: Streamed, rows: Sequence[Placed], is_full: bool, now: int, known_from: int) -> bool:
    """Whether a window holds no element of before an instant, and could hold none."""
    if isinstance(stage.window, TimeWindow):
        begin, _ = stage.window.bounds_ms(now)
        return begin is not None and begin >= known_from
    return is_full and all(_instant(row) >= known_from for row in rows)


def floor_of(at: At) -> int | None:
    """Elements of instants before this one are gone with the rows of a source; None: none are."""
    found = []
    for seen in at.values():
        source = seen.source
        if source.stream.is_table:
            found.append(source.retained_from if gone_versions(source) else None)
        else:
            found.append(gone_before(source))
    return max((instant for instant in found if instant is not None), default=None)


def now_of(at: At) -> int | None:
    """The instant of a query that sees its sources so."""
    streams = [seen.instant for seen in at.values() if not seen.source.stream.is_table]
    tables = [seen.instant for seen in at.values() if seen.source.stream.is_table]
    if not streams:
        return max((instant for instant in tables if instant is not None), default=None)
    known = [instant for instant in streams if instant is not None]
    return min(known) if len(known) == len(streams) else None


def earlier(at: At, instant: int) -> At:
    """The sources at an earlier instant, each at its own where that is earlier still."""
    return {
        name: Seen(seen.source, None if seen.instant is None else min(instant, seen.instant))
        for name, seen in at.items()
    }


def before_all(at: At) -> At:
    """The sources before anything was visible."""
    return {name: Seen(seen.source, None) for name, seen in at.items()}


def complete(query: Query, at: At) -> bool:
    """Whether nothing that its scans, and the streams among its stages, reach back to is gone."""
    seen = at[query.source]
    if scan(query.scan, seen.source, seen.instant).complete_from is not None:
        return False
    if query.scan.history and seen.instant is not None and lacks_versions(seen.source, seen.instant):
        return False
    for place, stage in enumerate(query.stages):
        if isinstance(stage, SemiJoin | Join | SetOperation) and not complete(stage.inner, at):
            return False
        if isinstance(stage, Streamed):
            below = replace(query, stages=query.stages[:place])
            if streamed(below, stage, at, _rows_alone).complete_from is not None:
                return False
    return True


def _rows_alone(query: Query, at: At) -> tuple[list[Values], int, int | None]:
    from engine.reference.stages import answer  # stages hold streams, which hold stages

    rows, errors, _ = answer(query, at)
    return rows, errors, None


def _known_from(below: Query, at: At, now: int) -> int | None:
    """The first instant whose changes are known; None: all are. The later an instant, the less windows reach
    back.
    """
    low = min([now, *(row.timestamp for seen in at.values() for row in seen.source.rows)]) - 1
    for seen in at.values():
        known = (seen.source.retained_from, seen.source.complete_from)
        low = min([low, *(instant - 1 for instant in known if instant is not None)])
    if complete(below, earlier(at, low)):
        return None
    high = now
    while high - low > 1:
        middle = (low + high) // 2
        if complete(below, earlier(at, middle)):
            high = middle
        else:
            low = middle
    return high + 1


def turning(query: Query, at: At) -> set[int]:
    """Instants at which the answer of a query may be another than a millisecond before; more than need be."""
    found = set(instants(query.scan, at[query.source].source.rows))
    for stage in query.stages:
        if isinstance(stage, SemiJoin | Join | SetOperation):
            found |= turning(stage.inner, at)
        elif isinstance(stage, Streamed) and isinstance(stage.window, TimeWindow):
            for instant in list(found):
                found |= set(of_window(stage.window, instant))
    return found


def _elements(
    below: Query, stage: Streamed, at: At, now: int, answer: Answer
) -> list[tuple[int, int, Values]]:
    """(instant, number at that instant, values) of each element, in order."""
    found: list[tuple[int, int, Values]] = []
    before = before_all(at)
    was, _, _ = answer(below, before)
    for instant in sorted(turning(below, at)):
        if instant > now:
            break
        stands = earlier(at, instant)
        rows, _, _ = answer(below, stands)
        if stage.operator == "istream":
            come = difference(rows, was)
        elif stage.operator == "dstream":
            come = difference(was, rows)
        else:
            come = rows if _members(below, stands) != _members(below, before) else []
        found += [(instant, number, values) for number, values in enumerate(come)]
        was, before = rows, stands
    return found


def difference(rows: Sequence[Values], others: Sequence[Values]) -> list[Values]:
    """The rows of a bag that another has not: of equal rows the last ones, in the order of the first bag."""
    left = Counter(exactly(row) for row in others)
    found = []
    for row in rows:
        key = exactly(row)
        if left[key]:
            left[key] -= 1
        else:
            found.append(row)
    return found


def _members(query: Query, at: At) -> list[frozenset[Hashable]]:
    """Which rows each scan gives."""
    return [members(scan, at[scan.source].source, at[scan.source].instant) for scan in query.scans()]


def _held(stage: Streamed, elements: list[tuple[int, int, Values]], now: int) -> tuple[list[Placed], bool]:
    """The elements in the window, and whether it holds as many as it may, of a window of rows without
    keys.
    """
    placed = [Placed(None, values, (instant, 0, number)) for instant, number, values in elements]
    window = stage.window
    if isinstance(window, TimeWindow):
        begin, end = window.bounds_ms(now)
        held = [row for row in placed if (begin is None or begin <= _instant(row)) and _instant(row) <= end]
        return held, False
    groups: dict[Identity, list[int]] = {}
    for place, row in enumerate(placed):
        if window.filter is None or evaluate(window.filter, row.values) is True:
            outcomes = [evaluate(key, row.values) for key in window.keys]
            key = identity([None if outcome is ERROR else outcome for outcome in outcomes])
            groups.setdefault(key, []).append(place)
    places = sorted(place for group in groups.values() for place in group[-window.rows :])
    is_full = not window.keys and len(places) == window.rows
    return [placed[place] for place in places], is_full


def _instant(row: Placed) -> int:
    assert row.moment is not None
    return row.moment[0]
