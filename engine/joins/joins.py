"""The joins of a set of sources: a group for each shape, made with its first query and gone with its last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from engine.joins.bounds import Reach
from engine.joins.group import JoinGroup
from engine.joins.key_index import KeyIndexes
from engine.joins.query_marks import Wants
from engine.joins.shape import Shape, shape_of, wanted_slots, windows_of
from engine.joins.view import JoinView
from engine.joins.waiting_conditions import PostponingSource, WaitingConditions
from engine.language.query import Query
from engine.model.batch import Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.usage import Stopwatch
from engine.operators.chain import leading_joins
from engine.stems.match_place import Place
from engine.stems.rows import Rows


class StoredRelation(Protocol):
    """A relation whose rows are known by their ordinals in the source."""

    def stored_ordinals(self) -> Int64Array: ...


@dataclass(frozen=True, slots=True)
class JoinViews:
    """The joins as they stand; immutable. widths: how many columns each source has."""

    views: Mapping[Shape, JoinView]
    widths: Mapping[SourceName, int]

    def places(self, query: Query, relations: Sequence[StoredRelation]) -> tuple[Int64Array, ...] | None:
        """Which rows of relations are partners by the keys of the query's chain of joins, in order.

        relations: what the scans of the query's inputs give, in the order of FROM; those behind the chain may
        be there or not. Returns places in each relation of the chain, so many arrays as it has inputs, and
        None where nothing is known. Raises LimitExceeded: too many tuples.
        """
        shape = shape_of(query, self.widths)
        view = None if shape is None else self.views.get(shape)
        if shape is None or view is None or len(relations) < len(shape.inputs):
            return None
        ordinals = [relation.stored_ordinals() for relation in relations[: len(shape.inputs)]]
        return view.tuples(ordinals, [Reach.of(window) for window in windows_of(query, shape)])


class Joins:
    """The writing side. indexes: those of the engine, which its sets of sources share."""

    def __init__(
        self,
        indexes: KeyIndexes,
        widths: Mapping[SourceName, int],
        timeless: Collection[SourceName] = (),
        composites_max: int = Limits().composites_max,
        watch: Stopwatch | None = None,
        failed: Callable[[Iterable[str], Exception], None] = lambda *_: None,
        capacities: Capacities = USUAL,
        waiting: Mapping[SourceName, PostponingSource] = MappingProxyType({}),
    ) -> None:
        """failed: told of a defect, with the queries that share a join in whose work it is. waiting: streams
        whose rows may wait for partners.
        """
        self._failed = failed
        self._capacities = capacities
        self._watch = watch or Stopwatch()
        self.groups: dict[Shape, JoinGroup] = {}
        self.shapes: dict[str, Shape] = {}
        """The shape of the join that a query shares, by query id."""
        self._wants: dict[str, Wants] = {}
        """What it asks for of each input."""
        self._indexes = indexes
        self._widths = dict(widths)
        self._timeless = frozenset(timeless)
        self._composites_max = composites_max
        self._postponed = WaitingConditions(waiting)
        self._view: JoinViews | None = None

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[JoinGroup]:
        return iter(self.groups.values())

    def group_of(self, query: Query) -> JoinGroup | None:
        """The group that a query shares, if there is one."""
        shape = shape_of(query, self._widths)
        return None if shape is None else self.groups.get(shape)

    def name_of(self, group: JoinGroup) -> str:
        """What a group joins."""
        return f"{'+'.join(self._widths)}/{group.shape}"

    def named(self) -> Iterator[tuple[str, JoinGroup]]:
        """The groups, each by what it joins."""
        for group in self:
            yield self.name_of(group), group

    def shared_by(self) -> dict[str, str]:
        """Returns what the group joins that a query shares, by query id. O(queries that share a join)."""
        names = {shape: self.name_of(group) for shape, group in self.groups.items()}
        return {query_id: names[shape] for query_id, shape in self.shapes.items()}

    def add(self, query_id: str, query: Query, places: Sequence[Place] = ()) -> bool:
        """A query comes. places: where the matches of its predicates are; none: it wants all rows. Returns
        whether it shares a join; what it shares is there after the next :meth:`advance`.
        """
        shape = shape_of(query, self._widths)
        if shape is not None:
            group = self.groups.get(shape)
            if group is None:
                group = JoinGroup(
                    shape,
                    self._indexes,
                    self._timeless,
                    self._composites_max,
                    capacities=self._capacities,
                )
                self.groups[shape] = group
            wants = wanted_slots(query, shape, places)
            group.hold(windows_of(query, shape), wants)
            self.shapes[query_id], self._wants[query_id] = shape, wants
            self._view = None
        return shape is not None

    def postpone(self, query_id: str, query: Query, *, waits: bool) -> None:
        """A query that came asks for nothing but its answer, when it is asked for, or for more than that."""
        self._postponed.release(query_id)
        shape = self.shapes.get(query_id)
        if waits and shape is not None and shape in self.groups and leading_joins(query)[0].kind == "inner":
            self._postponed.hold(query_id, self.groups[shape], self._wants[query_id])

    def remove(self, query_id: str, query: Query) -> None:
        """Remove a query; a group without queries goes with it."""
        self._postponed.release(query_id)
        shape, wants = self.shapes.pop(query_id, None), self._wants.pop(query_id, None)
        group = None if shape is None else self.groups.get(shape)
        if shape is None or group is None:
            return
        with self._work_of(shape):
            group.release(windows_of(query, shape), wants)
            if not group.queries:
                group.close()
                del self.groups[shape]
        self._view = None

    def awaited(self) -> dict[SourceName, set[int]]:
        """The slots, by source, whose matches with the rows that are there must have been made when the next
        :meth:`advance` is.
        """
        found: dict[SourceName, set[int]] = {}
        for group in self:
            for source, slots in group.awaited():
                if slots:
                    found.setdefault(source, set()).update(slots)
        return found

    def advance(
        self, rows: Mapping[SourceName, Rows], ends: Mapping[SourceName, int], now_ms: int | None
    ) -> None:
        """After a step or when queries came: rows below ``ends`` are visible at NOW."""
        self._view = None
        for shape, group in list(self.groups.items()):
            with self._work_of(shape):
                self._postponed.look_out(group)
                with group.placing.measured(group.usage), self._watch.on(group.usage):
                    group.advance(rows, ends, now_ms)
                self._postponed.meet(group)

    def drop_below(self, source: SourceName, base: int) -> None:
        """Rows of a source are gone."""
        self._view = None
        for shape, group in list(self.groups.items()):
            with self._work_of(shape):
                group.drop_below(source, base)

    def forget(self, source: SourceName) -> None:
        """The rows of a source begin elsewhere; to be followed by :meth:`advance`."""
        self._view = None
        for shape, group in list(self.groups.items()):
            if source in shape.inputs:
                with self._work_of(shape):
                    self._postponed.settle(shape)
                    group.forget()

    def view(self) -> JoinViews:
        """As they stand; the same object until something changes."""
        if self._view is None:
            views: dict[Shape, JoinView] = {}
            for shape, group in list(self.groups.items()):
                with self._work_of(shape):
                    views[shape] = group.view()
            self._view = JoinViews(views, self._widths)
        return self._view

    @contextmanager
    def _work_of(self, shape: Shape) -> Iterator[None]:
        """What fails within ends the group: nothing is known of that join any more, and whoever shares it is
        told.
        """
        try:
            yield
        except Exception as defect:  # noqa: BLE001  (it is of those who share the join)
            self._failed([name for name, shared in self.shapes.items() if shared == shape], defect)
            group, self._view = self.groups.pop(shape, None), None
            if group is not None:
                with suppress(Exception):  # its indexes stay behind, at worst
                    group.close()

    def _check(self, rows: Mapping[SourceName, Rows]) -> None:
        """rows: as at the last step."""
        for group in self:
            group._check(rows)
        self._postponed._check(self)

    @property
    def nbytes(self) -> int:
        """Bytes of all composites; the indexes' are told by ``indexes``."""
        return sum(group.nbytes for group in self)
