"""Plans whose joins let go of rows before windows or RETAIN take them, by the constraints of streams.

A row goes that has no partner and can get none any more, of an input whose rows are not given without one. A
query that tells rows alone as they come (ISTREAM), in columns that tell each pair from all others, lets go of
rows with partners too: when their pairs end nobody sees it, and no equal row comes at that instant.

What a stream says of the keys that are to come is said of its rows as they enter it, so it holds for windows
that hold them from then on: those that end at NOW and do not slide in steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.operators.join import NO_KNOWN_EXITS, Matching
from engine.dataflow.operators.rows import FilterSpec, ProjectSpec
from engine.dataflow.plan import Combined, Exits, Joined, OpaqueLeaf, OperatorOver, Plan, ScanLeaf
from engine.dataflow.release_plan import Made, Origin, Streams, origin_of, release_of
from engine.dataflow.releases.release import KEPT, Early, Release
from engine.language.query import Scan
from engine.model.changes import Operator
from engine.model.constraint import Unique
from engine.model.source import SourceName, Stream
from engine.windows.clauses import NOW, RowWindow

PRESERVED: Mapping[str, tuple[bool, bool]] = {
    "inner": (False, False),
    "semi": (False, False),
    "left": (True, False),
    "right": (False, True),
    "full": (True, True),
    "anti": (True, False),
}
"""By kind of join: whether left and right rows are given without a partner."""


def leaving_early(plan: Plan, operator: Operator, streams: Streams) -> Plan:
    """Returns the plan with joins that let go of rows early, where they can."""
    maker = _Maker(streams)
    made = maker.made(plan)
    known, pairs = made.known, maker.pairs
    if operator == "istream" and known is not None and len(known.scans) == 2 and pairs is not None:
        return _paired(made.plan, known, pairs)
    return made.plan


@dataclass(frozen=True, slots=True)
class _Walked:
    """A plan with its joins. known: of what its rows are made, if all of its operators below leave that to be
    seen.
    """

    plan: Plan
    known: Made | None = None


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A join of two scans. left, right: their numbers. keyed: the scans and columns that it joins by."""

    joined: Joined
    left: int
    right: int
    releases: tuple[Release, Release]
    entered: tuple[tuple[SourceName, ...], tuple[SourceName, ...]]
    keyed: frozenset[tuple[int, str]]


class _Maker:
    """``pairs``: the join of two scans that came last."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._scans = 0
        self._late = set[int]()
        """Scans whose rows enter the window later than the stream."""
        self.pairs: _Pairs | None = None

    def made(self, plan: Plan) -> _Walked:
        """The plan with its joins."""
        match plan:
            case ScanLeaf():
                return self._scanned(plan)
            case OperatorOver(FilterSpec() | ProjectSpec(), below=below):
                under = self.made(below)
                over = replace(plan, below=under.plan)
                known = under.known
                if known is not None and isinstance(plan.shape, ProjectSpec):
                    origins = [origin_of(output.expression, known) for output in plan.shape.outputs]
                    known = replace(known, origins=origins)
                return _Walked(over, known)
            case OperatorOver(GroupSpec(keys, calls), below=below):
                under = self.made(below)
                over, known = replace(plan, below=under.plan), under.known
                if known is None or not known.is_scan or known.is_grouped:
                    return _Walked(over)
                groups = [*(origin_of(key.expression, known) for key in keys), *[None] * len(calls)]
                return _Walked(over, replace(known, origins=groups, single=frozenset(), is_grouped=True))
            case OperatorOver(below=below) | Exits(below=below):
                return _Walked(replace(plan, below=self.made(below).plan))
            case Joined():
                return self._joined(plan)
            case Combined(left=left, right=right):
                return _Walked(replace(plan, left=self.made(left).plan, right=self.made(right).plan))
            case OpaqueLeaf():
                return _Walked(plan)

    def _scanned(self, plan: ScanLeaf) -> _Walked:
        stream = self._streams.get(plan.scan.source)
        if stream is None or plan.exits_known or plan.scan.assignment is not None:
            return _Walked(plan)
        number, self._scans = self._scans, self._scans + 1
        if not _is_prompt(plan.scan):
            self._late.add(number)
        origins = [Origin(number, place) for place in range(len(stream.stored_schema))]
        return _Walked(plan, Made(plan, origins, {number: stream}, frozenset({number}), is_scan=True))

    def _joined(self, plan: Joined) -> _Walked:
        left, right = self.made(plan.left), self.made(plan.right)
        made = replace(plan, left=left.plan, right=right.plan)
        kind, near, far = plan.matching.kind, left.known, right.known
        if near is None or far is None or plan.matching.latest is not None or plan.kept != NO_KNOWN_EXITS:
            return _Walked(made)
        both = self._release(plan.matching, near, far), self._release(plan.matching, near, far, turned=True)
        kept, entered = PRESERVED[kind], (_entered(near), _entered(far))
        sides = [
            KEPT if stays else replace(release, once=False) for release, stays in zip(both, kept, strict=True)
        ]
        if any(side.lines() for side in sides):
            made = replace(made, early=Early(sides[0], sides[1], entered, paired=False))
        if kind != "inner" or near.is_grouped or far.is_grouped:
            return _Walked(made)
        if near.is_scan and far.is_scan:
            ((one, _),), ((other, _),) = near.scans.items(), far.scans.items()
            of_keys = (
                *_keyed((origin_of(key, near) for key, _ in plan.matching.keys), near),
                *_keyed((origin_of(key, far) for _, key in plan.matching.keys), far),
            )
            self.pairs = _Pairs(made, one, other, both, entered, frozenset(of_keys))
        origins, scans = [*near.origins, *far.origins], {**near.scans, **far.scans}
        return _Walked(made, Made(made, origins, scans, frozenset(), is_scan=False))

    def _release(self, matching: Matching, left: Made, right: Made, *, turned: bool = False) -> Release:
        """When rows of the left input get no partner any more, or of the right one."""
        of_left = [origin_of(key, left) for key, _ in matching.keys]
        of_right = [origin_of(key, right) for _, key in matching.keys]
        near, near_keys, far, far_keys = left, of_left, right, of_right
        if turned:
            near, near_keys, far, far_keys = right, of_right, left, of_left
        prompt = {number: stream for number, stream in far.scans.items() if number not in self._late}
        if not prompt or not matching.keys:
            return KEPT
        release = release_of(near, near_keys, replace(far, scans=prompt), far_keys)
        return replace(release, awaited=None) if near.is_grouped else release


def _is_prompt(scan: Scan) -> bool:
    """Whether rows are in the window from the instant on at which they enter the stream."""
    window = scan.window
    if isinstance(window, RowWindow):
        return window.plain
    return window.end == NOW and window.slide_ms is None


def _entered(near: Made) -> tuple[SourceName, ...]:
    """The streams whose ordinals the words of ids are."""
    return tuple(stream.name for _, stream in sorted(near.scans.items()))


def _keyed(keys: Iterable[Origin | None], made: Made) -> Iterator[tuple[int, str]]:
    for key in keys:
        if key is not None:
            yield key.scan, made.scans[key.scan].stored_schema.fields[key.place].name


def _paired(plan: Plan, known: Made, pairs: _Pairs) -> Plan:
    """The plan, of which nobody sees pairs end, where its columns tell each pair from all others."""
    given = set(_keyed(known.origins, known))
    both = pairs.left, pairs.right
    left, right = (_is_told(known.scans[scan], scan, given, pairs.keyed) for scan in both)
    one, other = pairs.releases
    left, right = left or (right and other.once), right or (left and one.once)
    if not (left and right and (one.lines() or other.lines())):
        return plan
    return _with(plan, replace(pairs.joined, early=Early(one, other, pairs.entered, paired=True)))


def _is_told(stream: Stream, scan: int, given: Set[tuple[int, str]], keyed: Set[tuple[int, str]]) -> bool:
    """Whether some columns of a scan are given, and are not NULL, in which no two rows of it are equal."""
    nullable = {field.name for field in stream.schema.fields if field.nullable}
    told = {name for of, name in given if of == scan and (name not in nullable or (scan, name) in keyed)}
    return any(isinstance(one, Unique) and set(one.columns) <= told for one in stream.constraints)


def _with(plan: Plan, joined: Joined) -> Plan:
    """Selections and projections over another join of the same."""
    if isinstance(plan, OperatorOver):
        return replace(plan, below=_with(plan.below, joined))
    assert isinstance(plan, Joined)
    return joined
