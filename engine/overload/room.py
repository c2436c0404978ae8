"""How little the scans of a query may be given, in ms and percent; allotments that give less are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from engine.language.query import Query, Scan
from engine.language.render import render_name
from engine.model.allotment import Allotment, ScanAllotment
from engine.model.sample import PERCENT_MIN
from engine.model.source import SourceName, Stream
from engine.model.tolerance import Tolerance
from engine.overload.precision.freedom import Freedom, freedoms
from engine.overload.precision.of_queries import ScanShare
from engine.overload.precision.problem import Outcome
from engine.overload.reduced_query import percent_asked, window_asked_ms
from engine.windows.clauses import TimeWindow
from tureen.errors import AllotmentRefused

NEARLY_ALL = 0.01


@dataclass(frozen=True, slots=True)
class Room:
    """Bounds what one scan may be given: from the least that is allowed to the greatest, which is what the
    text asks for. window_ms: lengths of its window. percent: percentages of the stream's rows. None: it stays
    as the text says.
    """

    source: SourceName
    window_ms: tuple[int, int] | None = None
    percent: tuple[Decimal, Decimal] | None = None

    def __bool__(self) -> bool:
        return self.window_ms is not None or self.percent is not None


def rooms_of(
    query: Query, streams: Mapping[SourceName, Stream], tolerance: Tolerance, *, promised: bool = False
) -> tuple[Room, ...]:
    """Returns the room of each scan, in the order of ``Query.scans()``. promised: as in :func:`require_room`.
    O(stages).
    """
    free = freedoms(query, streams, tolerance, promised=promised)
    return tuple(_room(scan, one) for scan, one in zip(query.scans(), free, strict=True))


def _room(scan: Scan, freedom: Freedom) -> Room:
    window = percent = None
    asked_ms = window_asked_ms(scan)
    if freedom.window is not None and asked_ms is not None:
        least_ms = scan.window_down_to_ms or math.ceil(freedom.window * asked_ms)
        if isinstance(scan.window, TimeWindow) and scan.window.end.relative:
            least_ms = max(least_ms, -scan.window.end.ms)
        window = (min(max(1, least_ms), asked_ms), asked_ms)
    if freedom.rate is not None:
        asked = percent_asked(scan)
        least = max(PERCENT_MIN, Decimal(str(freedom.rate)) * 100)
        percent = (min(least, asked), asked)
    return Room(scan.source, window, percent)


def allotment_of(
    query: Query, rooms: Sequence[Room], given: Sequence[ScanShare], expected: Outcome
) -> Allotment:
    """What an allocation gives a query, within its rooms; windows and rates that lack less than
    :data:`NEARLY_ALL` of what is asked are whole. expected: of the answer.
    """
    scans = tuple(
        ScanAllotment(_window_ms(scan, room, one), _percent(scan, room, one))
        for scan, room, one in zip(query.scans(), rooms, given, strict=True)
    )
    return Allotment(scans, expected=expected.expected)


def _window_ms(scan: Scan, room: Room, given: ScanShare) -> int | None:
    if given.window_ms is None or room.window_ms is None:
        return None
    low, high = room.window_ms
    # What an allocation gives is how far back the window reaches; its length is less by its slide.
    slide_ms = (scan.window.slide_ms or 1) - 1 if isinstance(scan.window, TimeWindow) else 0
    ms = max(low, given.window_ms - slide_ms)
    return None if ms >= high * (1 - NEARLY_ALL) else ms


def _percent(scan: Scan, room: Room, given: ScanShare) -> Decimal | None:
    if given.rate is None or room.percent is None:
        return None
    low, high = room.percent
    percent = max(low, Decimal(f"{100 * given.rate:.4f}"))
    return None if percent >= high * Decimal(1 - NEARLY_ALL) else percent


def require_room(
    query: Query,
    streams: Mapping[SourceName, Stream],
    tolerance: Tolerance,
    allotment: Allotment,
    *,
    promised: bool = False,
) -> None:
    """Raises AllotmentRefused: what a scan is given is not what the query tolerates. promised: as of
    :func:`engine.overload.precision.freedom.freedoms`; steps of earlier journals were made without.
    """
    rooms = rooms_of(query, streams, tolerance, promised=promised)
    if len(rooms) != len(allotment.scans):
        raise AllotmentRefused(
            f"the query reads {len(rooms)} sources, and {len(allotment.scans)} are given something"
        )
    for room, given in zip(rooms, allotment.scans, strict=True):
        _require(room, given)


def _require(room: Room, given: ScanAllotment) -> None:
    name = render_name(room.source)
    if given.window_ms is not None:
        _require_within(f"the window of {name}", "ms", room.window_ms, given.window_ms)
    if given.percent is not None:
        _require_within(f"the sample of {name}", "percent", room.percent, given.percent)


def _require_within(
    what: str, unit: str, room: tuple[int | Decimal, int | Decimal] | None, given: int | Decimal
) -> None:
    if room is None:
        raise AllotmentRefused(
            f"{what} cannot be given less",
            hint="DOWN TO in the text, max_fn or max_error say what a query tolerates",
        )
    low, high = room
    if not Decimal(given).is_finite() or not low <= given < high:
        raise AllotmentRefused(
            f"{what} cannot be {given:,} {unit}", hint=f"at least {low:,} and less than {high:,} {unit}"
        )
