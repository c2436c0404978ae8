"""The queries of a promising join: what they have in common, and what each wants of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.joins.bounds import Reach
from engine.joins.shape import Shape, shape_of, windows_of
from engine.language.query import Query
from engine.model.expressions import Expression
from engine.model.source import SourceName
from engine.operators.scan import ScanAt
from engine.promising.acceptance import Predicates
from engine.promising.group import GroupKey, Member
from engine.promising.probed_input import lookup_of
from tureen.errors import NotSupported


def join_key(query: Query, widths: Mapping[SourceName, int]) -> GroupKey:
    """The key of the group that a join with a preference belongs to. widths: columns of each source.

    Raises NotSupported: its first stages are no inner join of two streams by equal columns, one of which each
    summary is on.
    """
    assert query.preference is not None
    shape = shape_of(query, widths)
    first = query.stages[0].join
    if shape is None or first is None or first.kind != "inner" or len(tuple(query.scans())) != 2:
        hint = "join two streams by equal columns: FROM a, b WHERE a.k = b.k"
        raise NotSupported("a preference is for a join of two streams", hint=hint)
    (edge,) = shape.edges
    one, other = query.preference.priorities
    for own, others, column in (
        (edge.left_keys, edge.right_keys, other.column),
        (edge.right_keys, edge.left_keys, one.column),
    ):
        if lookup_of(own, others, column) is None:
            hint = "let the estimates be of the columns that the streams are joined by"
            raise NotSupported("a summary is on a column that is no key of the join", hint=hint)
    return GroupKey.of("join", shape.inputs, edge, query.preference)


@dataclass(frozen=True, slots=True)
class KeptInputs:
    """What rows and entries are kept for, one an input."""

    reaches: tuple[Reach, ...]
    predicates: tuple[Predicates, ...]

    def covers(self, other: KeptInputs) -> bool:
        """Whether all that the other needs is kept."""
        return all(map(Reach.covers, self.reaches, other.reaches)) and all(
            one is None or (two is not None and two <= one)
            for one, two in zip(self.predicates, other.predicates, strict=True)
        )


class JoinMembers:
    """The queries of a promising join of one shape, which has two inputs."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.by_id: dict[str, Member] = {}
        self._needed: KeptInputs | None = None

    def __len__(self) -> int:
        return len(self.by_id)

    @property
    def weight(self) -> float:
        """The sum of their weights."""
        return sum(member.weight for member in self.by_id.values())

    def add(self, member: Member) -> None:
        """A query comes, or takes the place of the one of its id."""
        self.by_id[member.query_id] = member
        self._needed = None

    def remove(self, query_id: str) -> None:
        """A query goes."""
        del self.by_id[query_id]
        self._needed = None

    def reweigh(self, query_id: str, weight: float) -> None:
        """A query has another weight."""
        self.by_id[query_id] = replace(self.by_id[query_id], weight=weight)

    def needed(self) -> KeptInputs:
        """What they need of the rows of each input; there is one at least. O(members) after a change."""
        if self._needed is None:
            queries = [member.query for member in self.by_id.values()]
            reaches = zip(*map(self.reaches_of, queries), strict=True)
            scans = zip(*(query.scans() for query in queries), strict=True)
            self._needed = KeptInputs(
                tuple(Reach.widest(set(each)) for each in reaches),
                tuple(_any_of(scan.predicate for scan in each) for each in scans),
            )
        return self._needed

    def reaches_of(self, query: Query) -> tuple[Reach, ...]:
        """How far back each input is needed for a query."""
        return tuple(map(Reach.of, windows_of(query, self._shape)))

    def floors_of(self, query_id: str, at: Mapping[SourceName, ScanAt]) -> tuple[int, int]:
        """The ordinals at which the windows of a query begin, of each input."""
        reaches = self.reaches_of(self.by_id[query_id].query)
        one, other = (
            _floor(reach, at[source]) for source, reach in zip(self._shape.inputs, reaches, strict=True)
        )
        return one, other


def _floor(reach: Reach, scan: ScanAt) -> int:
    """The first ordinal in reach; where nothing is visible, the next."""
    return scan.end if scan.now_ms is None else reach.floor(scan.rows, scan.end, scan.now_ms)


def _any_of(predicates: Iterable[Expression | None]) -> Predicates:
    """Predicates of which a row has to satisfy one; None where a query has none, and so takes every row."""
    distinct = set(predicates)
    return None if None in distinct else frozenset(each for each in distinct if each is not None)
