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

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.language.query import Query, Scan
from engine.model.expressions import Column
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
class _Above:
    """grows: a missing row may bring others; paired: rows are compared with others; counted: aggregates of
    which some are not told from a sample.
    """

    grows: bool = False
    paired: bool = False
    counted: bool = False
    promised: bool = False


def freedoms(
    query: Query, streams: Mapping[SourceName, Stream], tolerance: Tolerance, *, promised: bool = False
) -> tuple[Freedom, ...]:
    """Returns the freedom of each scan, in the order of ``Query.scans()``. streams: the streams and tables
    that the query reads. promised: a scan is free only where the bounds of the tolerance are known to hold;
    by how much MAX is off is not known. O(stages).
    """
    calls = [call for stage in query.stages if isinstance(stage, Aggregate) for call in stage.calls]
    aggregates = any(isinstance(stage, Aggregate) for stage in query.stages)
    floor = FLOOR if (tolerance.max_error if aggregates else tolerance.max_fn) else None
    if promised and not all(map(is_told, calls)) and (tolerance.max_error or 1.0) < 1.0:
        floor = None
    found = _scans(query, streams, _Above(promised=promised))
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
    query: Query, streams: Mapping[SourceName, Stream], above: _Above | None = None
) -> Iterator[tuple[Scan, _Above]]:
    """Scans with what stands above them."""
    above = above or _Above()
    inside = above
    counted = False
    # From the answer down: what is met has the rest below it.
    inner: list[tuple[Query, _Above]] = []
    for place in range(len(query.stages) - 1, -1, -1):
        stage = query.stages[place]
        match stage:
            case Distinct() | Limit() | RowNumber() | Streamed():
                inside = replace(inside, grows=True)
            case Filter():
                below = query.stages[:place]
                inside = replace(inside, grows=inside.grows or any(isinstance(s, Aggregate) for s in below))
            case Aggregate(calls=calls):
                told = all(map(is_told, calls))
                inside = replace(inside, counted=inside.counted or counted or not told)
                counted = True
            case Join() | SemiJoin() | SetOperation():
                inner.append((stage.inner, _inner(stage, inside)))
                inside = _outer(stage, inside, streams)
            case Project() | Sort():
                pass
    yield query.scan, inside
    for each, around in reversed(inner):
        yield from _scans(each, streams, around)


def _inner(stage: Stage, above: _Above) -> _Above:
    """What stands above the right side."""
    match stage:
        case Join(kind=kind):
            untold = above.promised and stage.latest is not None
            grows = above.grows or untold or kind in ("left", "full", "anti")
            return replace(above, paired=True, grows=grows)
        case SemiJoin(negated=negated):
            return replace(above, paired=True, grows=above.grows or negated)
        case SetOperation("union"):
            return above
        case SetOperation(kind, all=all_):
            return replace(above, paired=True, grows=above.grows or not all_ or kind == "except")
    return above


def _outer(stage: Stage, above: _Above, streams: Mapping[SourceName, Stream]) -> _Above:
    """What stands above the left side."""
    match stage:
        case Join(kind=kind):
            many_one = kind in ("inner", "left") and _is_by_key(stage, streams)
            grows = above.grows or kind in ("right", "full")
            return replace(above, grows=grows, paired=above.paired or not many_one)
        case SemiJoin():
            return replace(above, paired=True)
        case SetOperation("union"):
            return above
        case SetOperation(all=all_):
            return replace(above, paired=True, grows=above.grows or not all_)
    return above


def _is_by_key(join: Join, streams: Mapping[SourceName, Stream]) -> bool:
    """Whether a left row has one partner at most: in a table, by all of its key."""
    table = streams[join.inner.source]
    plain = all(isinstance(stage, Project | Filter) for stage in join.inner.stages)
    if not table.is_table or not plain or join.latest is not None:
        return False
    names = {one.name for _, one in join.keys if isinstance(one, Column)}
    return set(table.key) <= names


def _of_scan(scan: Scan, stream: Stream, floor: float | None, above: _Above) -> Freedom:
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
