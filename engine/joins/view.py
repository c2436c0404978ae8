"""What readers see of a join: which rows of given relations are partners.

Every relation's rows are known by their ordinals; the join tells which combinations of one row each are
partners in all keys, by one of two ways that give the same:

*   the composites that are kept, those of them whose parts are all in the relations: O(composites), where the
    relations hold nothing that is beyond what composites are kept for;
*   a probe from relation to relation by the keys of their rows: O(rows of the relations).

The cheaper one by their counts is taken. Both end with O(partners). Where two inputs have a plain number for
a key and composites are many, neither is: the pipeline's own join then is as fast, and need not spell
partners out to count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.joins.bounds import Reach
from engine.joins.composites import Snapshot
from engine.joins.key_index import OrdinalKeys
from engine.joins.lineage import MarksView
from engine.joins.shape import Shape
from engine.joins.steps import Ends, JoinStep, NewRowBounds, PartnerLists, Route, ends_of
from engine.kernels import composites, join_lineage
from engine.model.batch import Int64Array
from engine.model.interruption import GrowingRoom, require_room
from engine.model.limits import Limits
from tureen.errors import LimitExceeded

Int32Array = npt.NDArray[np.int32]

TUPLES_MAX = Limits().intermediate_rows_max
ROW_BYTES = 32
"""About what a row of a relation takes while it is joined."""
TUPLE_BYTES = 32
"""About what a tuple takes until columns are made."""
PROBE_COST = 3
"""Composites that are looked through in the time of hashing and probing one row of a relation."""
ROOM_MIN = 4_096
ROOM_A_ROW = 12


@dataclass(frozen=True, slots=True)
class KeptComposites:
    """composites: all combinations of rows at or above floor, int64[inputs], that windows of these reaches
    ever hold together and that a query wants.
    """

    composites: Snapshot
    count: int
    floor: Int64Array
    reaches: tuple[Reach, ...]
    marks: tuple[MarksView, ...] | None = None
    """Marks by input: combinations whose marks have no bit in common are left out. None: none are."""

    def wants_all(self, ordinals: Sequence[Int64Array]) -> bool:
        """Whether the marks of all rows of some relations have a bit in common, so that all combinations of
        theirs are kept. O(rows).
        """
        if self.marks is None:
            return True
        bits = join_lineage.EVERY
        for marks, each in zip(self.marks, ordinals, strict=True):
            bits = int(join_lineage.common(each, marks.first, marks.marks, np.uint64(bits)))
        return bits != 0


@dataclass(frozen=True, slots=True)
class JoinView:
    """A join as it stands; immutable. keys: of each edge, at both ends. end: int64[inputs], rows below it are
    in. kept: None where no composites are. plain: two inputs, by a key that is a number: whoever has their
    rows joins them as fast as the numbers of the keys are looked up here.
    """

    shape: Shape
    keys: tuple[tuple[OrdinalKeys, OrdinalKeys], ...]
    end: Int64Array
    kept: KeptComposites | None
    plain: bool = False
    room: int = ROOM_MIN
    """For so many combinations at first."""

    def keys_text(self, number: int) -> str:
        """What partners equal each other in, by an edge: ``s.k = t.k``."""
        edge = self.shape.edges[number]
        return str(Shape(self.shape.inputs, (edge,)))

    def tuples(
        self, ordinals: Sequence[Int64Array], reaches: Sequence[Reach]
    ) -> tuple[Int64Array, ...] | None:
        """Places in each relation, of one length, ascending by the first, then the second, ...

        ordinals: int64, ascending, of each relation; reaches: of their windows. None: a relation has rows
        that are not in the indexes, or to join them anew is cheapest. Raises LimitExceeded: too many tuples.
        """
        if any(not len(each) for each in ordinals):
            return tuple(np.empty(0, np.int64) for _ in ordinals)
        require_room(ROW_BYTES * sum(map(len, ordinals)))
        kept = self.kept
        cheap = kept is not None and kept.count <= PROBE_COST * sum(map(len, ordinals))
        if cheap and self.covers(ordinals, reaches):
            return self.picked(ordinals)
        if self.plain or not self._indexed(ordinals):
            return None
        return self.probed(ordinals)

    def covers(self, ordinals: Sequence[Int64Array], reaches: Sequence[Reach]) -> bool:
        """Whether composites are kept of all that the relations hold, none of which is empty."""
        kept = self.kept
        if kept is None:
            return False
        return all(
            each[0] >= kept.floor[place] and each[-1] < self.end[place] for place, each in enumerate(ordinals)
        ) and (
            all(one.covers(other) for one, other in zip(kept.reaches, reaches, strict=True))
            and kept.wants_all(ordinals)
        )

    def _indexed(self, ordinals: Sequence[Int64Array]) -> bool:
        """Whether the keys of all rows are known."""
        return all(
            keys.has(ordinals[place])
            for edge, pair in zip(self.shape.edges, self.keys, strict=True)
            for place, keys in zip((edge.left, edge.right), pair, strict=True)
        )

    def picked(self, ordinals: Sequence[Int64Array]) -> tuple[Int64Array, ...]:
        """From the composites, which cover the relations."""
        assert self.kept is not None
        first = np.array([each[0] for each in ordinals], np.int64)
        spans = [int(each[-1] - each[0]) + 1 for each in ordinals]
        at = np.concatenate([[0], np.cumsum(spans)]).astype(np.int64)
        places = np.full(int(at[-1]), -1, np.int32)
        for start, lowest, each in zip(at, first, ordinals, strict=False):
            places[start + each - lowest] = np.arange(len(each), dtype=np.int32)
        room, memory = self.room, GrowingRoom()
        while True:
            out = np.empty((len(first), room), np.int64)
            found = 0
            for parts, count, origin in self.kept.composites:
                found = composites.pick(parts, count, origin, first, at, places, out, found)
            _bounded(found)
            memory.grow(TUPLE_BYTES * found)
            if found <= room:
                return _in_order(out[:, :found], [len(each) for each in ordinals])
            room = found

    def probed(self, ordinals: Sequence[Int64Array]) -> tuple[Int64Array, ...]:
        """Input by input as FROM names them, so that the tuples come in order.

        Rows are counted from the end, but those of the first: chains run from newest to oldest.
        """
        sizes = [len(each) for each in ordinals]
        local: dict[tuple[int, int], Ends] = {}
        order = [JoinStep(place, _edges_to(self.shape, place)) for place in range(1, len(ordinals))]
        probed = {(step.edges[0], step.place) for step in order}
        for number, (edge, pair) in enumerate(zip(self.shape.edges, self.keys, strict=True)):
            for place, keys in zip((edge.left, edge.right), pair, strict=True):
                found, null = keys.of(ordinals[place] if place == 0 else ordinals[place][::-1])
                local[number, place] = ends_of(found, null, indexed=(number, place) in probed)
        upper, zeros = np.array(sizes, np.int64), np.zeros(len(sizes), np.int64)
        bounds = NewRowBounds.none(len(sizes))
        lists = PartnerLists.for_rows(sizes[0])
        route = Route(self.shape, 0, order, lambda *at: local[at], bounds, zeros, upper, lists)
        pieces: list[Int32Array] = []
        total, start, room, memory = 0, 0, ROOM_A_ROW * max(sizes), GrowingRoom()
        while start < sizes[0]:
            parts = np.empty((room, len(sizes)), np.int32)
            start, count = route.run(start, sizes[0], zeros, parts, 0)
            total += count
            _bounded(total if start == sizes[0] else total + 1)
            memory.grow(TUPLE_BYTES * total)
            pieces.append(parts[:count])
            room *= 2
        places, at = np.empty((len(sizes), total), np.int64), 0
        for parts in pieces:
            composites.spell(parts, len(parts), upper, places, at)
            at += len(parts)
        return tuple(places)


def _edges_to(shape: Shape, place: int) -> tuple[int, ...]:
    """The edges that lead from earlier inputs to one."""
    return tuple(number for number, edge in enumerate(shape.edges) if edge.right == place)


def _bounded(tuples: int) -> None:
    if tuples > TUPLES_MAX:
        hint = "narrow the windows or the predicates"
        raise LimitExceeded("intermediate_rows_max", TUPLES_MAX, tuples, hint=hint)


def _in_order(tuples: Int64Array, sizes: Sequence[int]) -> tuple[Int64Array, ...]:
    """The columns, by the first, then the second, ... O(inputs * tuples + sizes)."""
    order = np.arange(tuples.shape[1])
    for places, size in zip(tuples[::-1], reversed(sizes), strict=True):
        after = np.empty_like(order)
        composites.arrange(places, order, np.zeros(size + 1, np.int64), after)
        order = after
    return tuple(places[order] for places in tuples)
