"""Which sizes of synopses can be set, and what each value of them takes in bytes, as estimated.

window_ms.<source> of a query that tolerates less     rows of the source that no other window reaches
composites_max of a join                              combinations that it keeps; beyond it keeps none

A size is told with the bytes that it holds now for itself alone: making a window shorter frees nothing as
long as another one, or RETAIN, keeps the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from broker.observe.allotments import WINDOW, allotment_attributes, source_of
from broker.observe.entity_reading import QUERY, part_id
from engine.model.attributes import Attribute
from engine.model.source import SourceName, Stream
from engine.queries.entities import Report
from engine.queries.kept_rows import KeptRows
from engine.standing.queries import ShownQueries
from engine.standing.query import StandingQuery

COMPOSITES = "composites_max"
LOOKED_AT_MAX = 500
"""Queries that tolerate less and are looked at in one shard for one list."""

KeptBySource = Mapping[SourceName, KeptRows]


@dataclass(frozen=True, slots=True)
class Size:
    """entity, attribute: what is set. value: as it is; low, high: its range. nbytes: what it holds for itself
    alone. bytes_low, bytes_high: the same at the ends of the range; None: nothing tells.
    """

    entity: str
    attribute: str
    value: int
    unit: str
    low: int
    high: int
    nbytes: int
    bytes_low: int | None
    bytes_high: int | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        told = asdict(self)
        told["bytes"] = told.pop("nbytes")
        return told


def window_sizes(
    query: StandingQuery, streams: Mapping[SourceName, Stream], kept: KeptBySource
) -> list[Size]:
    """List the sizes of the windows of a query that may be shorter. O(size of the query)."""
    found = []
    for one in allotment_attributes(query, streams):
        rows = kept.get(source_of(query, one.name)) if one.name.startswith(WINDOW) else None
        if rows is None or one.bounds is None or not isinstance(one.value, int):
            continue
        assert one.bounds.low is not None
        assert one.bounds.high is not None
        low, high, value = int(one.bounds.low), int(one.bounds.high), one.value
        nbytes = rows.bytes_of(value, value)
        if nbytes is not None:
            found.append(
                Size(
                    QUERY + query.query_id,
                    one.name,
                    value,
                    "ms",
                    low,
                    high,
                    nbytes,
                    rows.bytes_of(value, low),
                    rows.bytes_of(value, high),
                )
            )
    return found


def window_at(query: StandingQuery, size: Size, kept: KeptBySource, nbytes: float) -> int | None:
    """The length of a window at which it holds so many bytes for itself alone, within its range; None:
    nothing tells.
    """
    rows = kept.get(source_of(query, size.attribute))
    reach = None if rows is None else rows.reach_of(size.value, nbytes)
    return None if reach is None else max(size.low, min(size.high, reach))


def join_size(number: int, id_: str, attributes: tuple[Attribute, ...]) -> Size | None:
    """The size of the combinations that a join on a shard keeps; None: it keeps none."""
    facts = {one.name: one for one in attributes}
    limit, held, kept = (facts[name].value for name in (COMPOSITES, "composites_bytes", "composites_kept"))
    if not (isinstance(limit, int) and isinstance(held, int) and isinstance(kept, int)) or not kept:
        return None
    bounds = facts[COMPOSITES].bounds
    assert bounds is not None
    assert bounds.high is not None
    each = held / kept
    high = int(bounds.high)
    return Size(part_id(number, id_), COMPOSITES, limit, "combinations", 0, high, held, 0, round(high * each))


class TolerantQueries:
    """The queries of one shard that tolerate less: looked for again among those that changed alone."""

    def __init__(self) -> None:
        self._shown: ShownQueries | None = None
        self._ids: dict[str, None] = {}

    def of(self, shown: ShownQueries) -> list[StandingQuery]:
        """List the tolerant queries of now. O(parts of the map + queries of parts that changed + these)."""
        for query in shown.changed_since(self._shown):
            if query.is_tolerant:
                self._ids[query.query_id] = None
            else:
                self._ids.pop(query.query_id, None)
        self._shown = shown
        for gone in [name for name in self._ids if name not in shown]:
            del self._ids[gone]
        return [shown[name] for name in self._ids]


def sizes_of(
    number: int,
    report: Report,
    tolerant: list[StandingQuery],
    streams: Mapping[SourceName, Stream],
    kept: KeptBySource,
) -> tuple[list[Size], int]:
    """Those of a shard, and how many of the queries that tolerate less were not looked at. O(these)."""
    found = [
        size
        for part in report.parts
        if part.id.startswith("join/") and (size := join_size(number, part.id, part.attributes)) is not None
    ]
    holding = [query for query in tolerant if query.holds_rows]
    for query in holding[:LOOKED_AT_MAX]:
        found += window_sizes(query, streams, kept)
    return found, max(0, len(holding) - LOOKED_AT_MAX)
