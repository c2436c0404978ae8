"""Plans whose joins and groups let go of rows by constraints, and so need no retention to be bounded.

Such a plan is made of inner joins of streams without windows, or of groups over one stream, with selections
and projections, and says how rows come alone (ISTREAM), so that nobody has to see a row leave. Each input of
each of its joins lets rows go, and each group is over at some time. Its scans *hold* their rows: what RETAIN
takes from the stream stays until a constraint lets it go, and the changes are those of the query over all
rows since it is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.operators.join import Matching
from engine.dataflow.operators.rows import FilterSpec, ProjectSpec
from engine.dataflow.plan import Joined, OperatorOver, Plan, ScanLeaf
from engine.dataflow.releases.release import Awaited, Below, ClosedKeys, Final, Release
from engine.model.changes import Operator
from engine.model.constraint import Clustered, Ordered, References, Unique
from engine.model.expressions import Column, Expression
from engine.model.source import SourceName, Stream
from engine.model.types import Kind
from engine.windows.clauses import UNBOUNDED

Streams = Mapping[SourceName, Stream]

COMPARED = frozenset({Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP})
"""Values that are whole numbers in their order."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The column of a stream that a column of a plan is. scan: which of the plan's."""

    scan: int
    place: int


@dataclass(frozen=True, slots=True)
class Made:
    """A plan with releases. origins: of its columns, None of those that are computed. scans: its streams by
    number. single: those whose rows are in one row of it at most. is_scan: there is no join in it.
    is_grouped: it is of groups.
    """

    plan: Plan
    origins: Sequence[Origin | None]
    scans: Mapping[int, Stream]
    single: frozenset[int]
    is_scan: bool
    is_grouped: bool = False


def releasing(plan: Plan, operator: Operator, streams: Streams) -> Plan | None:
    """Returns the plan with releases at its joins, and with scans that hold rows; None where rows would pile
    up, or somebody has to see them leave.
    """
    if operator != "istream" or isinstance(plan, ScanLeaf):
        return None
    made = _Maker(streams).made(plan)
    is_bounded = made is not None and (made.is_grouped or not made.is_scan)
    return made.plan if made is not None and is_bounded else None


class _Maker:
    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._scans = 0

    def made(self, plan: Plan) -> Made | None:
        match plan:
            case ScanLeaf():
                return self._scanned(plan)
            case OperatorOver(FilterSpec(), below=below):
                under = self.made(below)
                return None if under is None else replace(under, plan=replace(plan, below=under.plan))
            case OperatorOver(ProjectSpec(outputs), below=below):
                under = self.made(below)
                if under is None:
                    return None
                origins = [origin_of(output.expression, under) for output in outputs]
                return replace(under, plan=replace(plan, below=under.plan), origins=origins)
            case OperatorOver(GroupSpec(in_order=False) as groups, below=below):
                under = self.made(below)
                is_scan = under is not None and under.is_scan and not under.is_grouped
                return self._grouped(plan, groups, under) if under is not None and is_scan else None
            case Joined(Matching(kind="inner", latest=None)):
                left, right = self.made(plan.left), self.made(plan.right)
                if left is None or right is None or left.is_grouped or right.is_grouped:
                    return None
                return self._joined(plan, left, right)
        return None

    def _grouped(self, plan: OperatorOver, groups: GroupSpec, under: Made) -> Made | None:
        keys = [origin_of(key.expression, under) for key in groups.keys]
        ((scan, stream),) = under.scans.items()
        names = _names(under, keys, scan)
        overs = [
            _over(stream, each, each.columns)
            for each in stream.constraints
            if isinstance(each, Clustered) and set(each.columns) <= names.keys()
        ]
        over = min(overs, key=lambda each: each.within_rows, default=None)
        over_keys = () if over is None else tuple(names[name] for name in over.names)
        below = tuple(each for each in _belows(under, keys) if not stream.schema.fields[each.place].nullable)
        if over is None and not below:
            return None
        final = Final(stream.name, over, over_keys, below)
        made = replace(plan, below=under.plan, final=final)
        origins = [None] * (len(groups.keys) + len(groups.calls))
        return replace(under, plan=made, origins=origins, is_grouped=True)

    def _scanned(self, plan: ScanLeaf) -> Made | None:
        scan, stream = plan.scan, self._streams.get(plan.scan.source)
        is_whole = scan.window == UNBOUNDED and scan.assignment is None and scan.sample is None
        if stream is None or stream.is_table or not is_whole:
            return None
        number, self._scans = self._scans, self._scans + 1
        origins = [Origin(number, place) for place in range(len(stream.schema))]
        return Made(replace(plan, held=True), origins, {number: stream}, frozenset({number}), is_scan=True)

    def _joined(self, plan: Joined, left: Made, right: Made) -> Made | None:
        keys = plan.matching.keys
        of_left = [origin_of(key, left) for key, _ in keys]
        of_right = [origin_of(key, right) for _, key in keys]
        releases = release_of(left, of_left, right, of_right), release_of(right, of_right, left, of_left)
        if not all(releases):
            return None
        made = replace(plan, left=left.plan, right=right.plan, releases=releases)
        origins, scans = [*left.origins, *right.origins], {**left.scans, **right.scans}
        single = frozenset[int]()
        for release, side in zip(releases, (left, right), strict=True):
            single |= side.single if release.once else frozenset()
        return Made(made, origins, scans, single, is_scan=False)


def origin_of(expression: Expression, made: Made) -> Origin | None:
    """Returns the column that an expression over a plan's rows is; None of what is computed."""
    if not isinstance(expression, Column) or expression.index >= len(made.origins):
        return None
    return made.origins[expression.index]


_Keys = Sequence[Origin | None]
"""The origins of the columns by which an input is joined."""


def release_of(near: Made, near_keys: _Keys, far: Made, far_keys: _Keys) -> Release:
    """Returns when rows of one input go, by what is known of the other."""
    over = min(_overs(far, far_keys), key=lambda each: each.within_rows, default=None)
    return Release(
        over,
        tuple(_belows(far, far_keys)),
        any(_uniques(far, far_keys)),
        next(_awaited(near, near_keys, far, far_keys), None) if far.is_scan else None,
    )


def _names(made: Made, keys: _Keys, scan: int) -> dict[str, int]:
    """The columns of a scan that it is joined by, and which of the keys each is."""
    fields = made.scans[scan].stored_schema.fields
    return {
        fields[key.place].name: number
        for number, key in enumerate(keys)
        if key is not None and key.scan == scan
    }


def _overs(far: Made, keys: _Keys) -> Iterator[ClosedKeys]:
    for scan, stream in far.scans.items():
        names = _names(far, keys, scan)
        for each in stream.constraints:
            if isinstance(each, Clustered) and len(names) == len(keys) and set(each.columns) == set(names):
                yield _over(stream, each, tuple(names))


def _over(stream: Stream, clustered: Clustered, names: tuple[str, ...]) -> ClosedKeys:
    """Returns when keys of a clustered stream are closed. names: its columns, in the order of the keys."""
    places = [stream.schema.index(name) for name in names]
    found = tuple(place for place in places if place is not None)
    return ClosedKeys(stream.name, found, names, clustered.within_rows)


def _belows(far: Made, keys: _Keys) -> Iterator[Below]:
    for scan, stream in far.scans.items():
        names = _names(far, keys, scan)
        if not far.is_scan and len(names) < len(keys):
            continue  # which of its rows wait in a join below is found by all keys
        for each in stream.constraints:
            if isinstance(each, Ordered) and each.column in names:
                place = stream.schema.index(each.column)
                assert place is not None
                if stream.schema.fields[place].type.kind in COMPARED:
                    yield Below(stream.name, place, each.column, each.within_rows, names[each.column])


def _uniques(far: Made, keys: _Keys) -> Iterator[bool]:
    for scan in far.single:
        names = _names(far, keys, scan)
        for each in far.scans[scan].constraints:
            yield isinstance(each, Unique) and set(each.columns) <= names.keys()


def _awaited(near: Made, near_keys: _Keys, far: Made, far_keys: _Keys) -> Iterator[Awaited]:
    ((target_scan, target),) = far.scans.items()
    targets = _names(far, far_keys, target_scan)
    for scan, stream in near.scans.items():
        names = _names(near, near_keys, scan)
        for each in stream.constraints:
            if not isinstance(each, References) or each.target != target.name:
                continue
            pairs = zip(each.columns, each.target_columns, strict=True)
            if all(name in names and targets.get(to) == names[name] for name, to in pairs):
                yield Awaited(target.name, each.within_rows, each.within_ms)
