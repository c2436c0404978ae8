"""What a query is given of what it asks for, as attributes of its entity, and edits of these as allotments.

window_ms.orders      the length of the window over orders, down to what the query tolerates
percent.orders.2      of the second scan of orders, which percentage of rows it samples
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from engine.model.allotment import Allotment, ScanAllotment
from engine.model.approximation import Expected
from engine.model.attributes import Attribute, AttributeValue, NumberRange
from engine.model.source import SourceName, Stream
from engine.overload.room import Room, rooms_of
from engine.standing.query import StandingQuery
from tureen.errors import AttributeRefused

WINDOW, PERCENT = "window_ms.", "percent."
Streams = Mapping[SourceName, Stream]


def is_allotment(name: str) -> bool:
    """Whether an attribute of a query is of what it is given."""
    return name.startswith((WINDOW, PERCENT))


def source_of(query: StandingQuery, name: str) -> SourceName:
    """The source whose scan an attribute is of. query: as it stands; name: one of its attributes' here."""
    of = name.removeprefix(WINDOW).removeprefix(PERCENT)
    seen = Counter[str]()
    for scan in query.asked.scans():
        seen[scan.source] += 1
        if of == _numbered(scan.source, seen[scan.source]):
            return scan.source
    raise KeyError(name)


def _numbered(source: SourceName, number: int) -> str:
    """How the n-th scan of a source is named."""
    return source if number == 1 else f"{source}.{number}"


def allotment_attributes(query: StandingQuery, streams: Streams) -> tuple[Attribute, ...]:
    """List the attributes of the scans of a query that may be given less. streams: the streams that the query
    reads. O(size of the query).
    """
    if not query.is_tolerant:
        return ()
    return tuple(attribute for _, attribute in _attributes(query, streams))


def precision_attributes(expected: Expected, measured: Expected) -> tuple[Attribute, ...]:
    """How precise an answer is expected to be, and is by the rows that are there."""
    words = {
        "fp": "share of its rows that are wrong",
        "fn": "share of the rows due that are missing",
        "error": "half the 95 % interval of its aggregates, relative to their values",
    }
    found = []
    for name, about in words.items():
        for suffix, told, how in (
            ("", measured, "by the rows that are there"),
            ("_expected", expected, "as expected when it was given less"),
        ):
            value = getattr(told, name)
            if value is not None:
                found.append(Attribute(name + suffix, value, f"{about}, {how}", unit="share"))
    return tuple(found)


def edited(
    id_: str, query: StandingQuery, streams: Streams, values: Mapping[str, AttributeValue]
) -> Allotment:
    """What a query is given once these attributes are set; None: all that is asked for. id_: of the entity.

    Raises AttributeRefused.
    """
    known = {attribute.name: (place, attribute) for place, attribute in _attributes(query, streams)}
    scans = list(_given(query))
    for name, value in values.items():
        if name not in known:
            raise AttributeRefused(
                id_,
                name,
                value,
                list(known),
                "the query tolerates nothing less there: DOWN TO, max_fn or max_error say what it does",
            )
        place, attribute = known[name]
        read = attribute.read(value)
        refusal = None if read is None else attribute.refusal(read)
        if refusal is not None:
            raise AttributeRefused(id_, name, value, list(known), refusal)
        assert attribute.bounds is not None
        amount = None if read is None or read == attribute.bounds.high else read
        if name.startswith(WINDOW):
            scans[place] = replace(scans[place], window_ms=None if amount is None else int(amount))
        else:
            percent = None if amount is None else Decimal(str(amount))
            scans[place] = replace(scans[place], percent=percent)
    return Allotment(tuple(scans), by_hand=True)


def _given(query: StandingQuery) -> tuple[ScanAllotment, ...]:
    if query.allotted is not None:
        return query.allotted.allotment.scans
    return tuple(ScanAllotment() for _ in query.asked.scans())


def _attributes(query: StandingQuery, streams: Streams) -> Iterator[tuple[int, Attribute]]:
    """(place of the scan, attribute)."""
    seen = Counter[str]()
    rooms = rooms_of(query.asked, streams, query.tolerance, promised=True)
    for place, (room, given) in enumerate(zip(rooms, _given(query), strict=True)):
        seen[room.source] += 1
        of = _numbered(room.source, seen[room.source])
        yield from ((place, one) for one in _of_scan(of, room, given))


def _of_scan(of: str, room: Room, given: ScanAllotment) -> Iterator[Attribute]:
    if room.window_ms is not None:
        low, high = room.window_ms
        yield Attribute(
            WINDOW + of,
            high if given.window_ms is None else given.window_ms,
            "the length of the window that it is given; the greatest, and NULL, is what its text asks for",
            bounds=NumberRange(low, high),
            unit="ms",
            kind="integer",
            changes_answers=True,
            clearable=True,
        )
    if room.percent is not None:
        least, asked = map(float, room.percent)
        yield Attribute(
            PERCENT + of,
            asked if given.percent is None else float(given.percent),
            "the percentage of rows that it samples; the greatest, and NULL, is what its text asks for",
            bounds=NumberRange(least, asked),
            unit="percent",
            kind="number",
            changes_answers=True,
            clearable=True,
        )
