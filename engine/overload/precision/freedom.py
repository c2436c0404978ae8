"""How far the scans of a query may be given less than its text asks for.

What the text allows (DOWN TO) and what the query tolerates (max_fn of rows, max_error of aggregates), but
never where a loss may make the answer grow (STREAM, section 5.1.1): at or below DISTINCT, LIMIT or
ROW_NUMBER, on the right of a negation, on the side of an outer join that is filled up with NULL, below a
condition on aggregates. A sample passes selections, projections and a join with a table by its key, whose
rows it keeps whole; above it only COUNT, SUM and AVG are told from it, and before a window of rows it brings
older rows in. Where the text itself says SAMPLE(p DOWN TO q) that is its author's to know.

What is *promised* is less: nothing tells by how much MAX is off, and which partner ASOF finds in a shorter
window. Steps of earlier journals were made without, so they are checked without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.language.query import Query, Scan
from engine.model.source import SourceName, Stream
from engine.model.tolerance import Tolerance
from engine.overload.precision.of_query import is_told, rate_of
from engine.windows.clauses import RowWindow, TimeWindow

FLOOR = 0.01
"""A query that names its tolerance and no DOWN TO is given this share at least."""


@dataclass(frozen=True, slots=True)
class Freedom:
    """Bounds how little one scan may be given. window: the least share of its window. rate: the least share
    of the stream's rows, in (0, rate of its text]. None: it is given all that its text asks for.
    """

    window: float | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Above:
    """What stands above a relation. grows: a missing row may bring others; paired: rows are compared with
    others; counted: aggregates of which some are not told from a sample; promised: as of :func:`freedoms`;
    grouped: an aggregate of the same query.
    """

    grows: bool = False
    paired: bool = False
    counted: bool = False
    promised: bool = False
    grouped: bool = False


def freedoms(
    query: Query, streams: Mapping[SourceName, Stream], tolerance: Tolerance, *, promised: bool = False
) -> tuple[Freedom, ...]:
    """Returns the freedom of each scan, in the order of ``Query.scans()``. streams: the streams and tables
    that the query reads. promised: a scan is free only where the bounds of the tolerance are known to hold;
    by how much MAX is off is not known. O(stages).
    """
    calls = [call for aggregate in query.aggregates for call in aggregate.calls]
    floor = FLOOR if (tolerance.max_error if query.aggregates else tolerance.max_fn) else None
    if promised and not all(map(is_told, calls)) and (tolerance.max_error or 1.0) < 1.0:
        floor = None
    found = _scans(query, streams, Above(promised=promised))
    return tuple(_of_scan(scan, streams[scan.source], floor, above) for scan, above in found)


def losable(query: Query, streams: Mapping[SourceName, Stream]) -> tuple[bool, ...]:
    """Returns for each scan, in the order of ``Query.scans()``, whether it may lose rows without the answer
    growing. Tables may lose none. O(stages).
    """
    return tuple(
        not (above.grows or scan.history or streams[scan.source].is_table)
        for scan, above in _scans(query, streams)
    )


def _scans(
    query: Query, streams: Mapping[SourceName, Stream], above: Above | None = None
) -> Iterator[tuple[Scan, Above]]:
    """Scans with what stands above them."""
    inside = replace(above or Above(), grouped=False)
    # From the answer down: what is met has the rest below it.
    inner: list[tuple[Query, Above]] = []
    for place in range(len(query.stages) - 1, -1, -1):
        stage = query.stages[place]
        if stage.right_input is not None:
            inner.append((stage.right_input, above_right(stage, inside)))
        on_groups = stage.condition_of_rows is not None and any(s.aggregate for s in query.stages[:place])
        grows = inside.grows or stage.replaces_missing or on_groups
        inside = above_left(stage, replace(inside, grows=grows), streams)
    yield query.scan, inside
    for each, around in reversed(inner):
        yield from _scans(each, streams, around)


@asked_of("flow")
def above_left(stage: Stage, above: Above, streams: Mapping[SourceName, Stream]) -> Above:
    """What stands above the relation of a stage."""
    return above


@asked_of("flow")
def above_right(stage: Stage, above: Above) -> Above:
    """What stands above the second input of a stage."""
    return above


def _of_scan(scan: Scan, stream: Stream, floor: float | None, above: Above) -> Freedom:
    if stream.is_table or above.grows or scan.assignment is not None or scan.history:
        return Freedom()
    window = scan.window
    least = None
    if isinstance(window, TimeWindow) and window.reach_ms:
        down_to_ms = scan.window_down_to_ms
        least = floor if down_to_ms is None else down_to_ms / window.reach_ms
    down_to = None if scan.sample is None else scan.sample.down_to
    rate = None
    if down_to is not None:
        rate = float(down_to) / 100
    elif floor is not None and not (above.paired or above.counted or isinstance(window, RowWindow)):
        rate = floor * rate_of(scan)
    return Freedom(least, rate)
