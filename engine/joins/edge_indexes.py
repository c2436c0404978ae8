"""The indexes that one shape is probed through: two for each edge, taken from those of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.joins.key_index import KeyIndex, KeyIndexes, OrdinalKeys
from engine.joins.lineage import JoinLineage
from engine.joins.shape import Shape
from engine.joins.steps import Ends
from engine.model.batch import Int64Array
from engine.stems.rows import Rows


class EdgeIndexes:
    """Taken from ``registry`` until :meth:`close`."""

    def __init__(self, shape: Shape, registry: KeyIndexes) -> None:
        self.registry = registry
        self._edges = shape.edges
        self._pairs = tuple(
            (
                registry.take(shape.inputs[edge.left], edge.left_keys),
                registry.take(shape.inputs[edge.right], edge.right_keys),
            )
            for edge in shape.edges
        )
        self._at = [list(dict.fromkeys(self._of(place))) for place in range(len(shape.inputs))]
        """The indexes that lie at each input."""

    def _of(self, place: int) -> Iterator[KeyIndex]:
        for edge, pair in zip(self._edges, self._pairs, strict=True):
            if place in (edge.left, edge.right):
                yield pair[place == edge.right]

    def __iter__(self) -> Iterator[KeyIndex]:
        """Each once for each edge that uses it."""
        for pair in self._pairs:
            yield from pair

    def close(self) -> None:
        """Give them back; they are not used any more."""
        for index in self:
            self.registry.give_back(index)

    def take_in(
        self, inputs: Sequence[Rows], starts: Sequence[int], end: Int64Array, lineage: JoinLineage
    ) -> None:
        """Rows of each input from its start on and below ``end`` are in, as far as somebody wants them."""
        for place, (rows, start, stop) in enumerate(zip(inputs, starts, end.tolist(), strict=True)):
            wanted = lineage.wanted_of(place, start, stop)
            for index in self._at[place]:
                index.take_in(rows, start, wanted, stop)

    def end_of(self, number: int, place: int) -> Ends:
        """The arrays of the end of an edge that lies at this input."""
        index = self._pairs[number][place == self._edges[number].right]
        slots, keys, back, _, first, gone = index.arrays()
        return Ends(keys, back, slots, first, gone)

    @property
    def unlike(self) -> list[tuple[int, int]]:
        """How many keys the left and the right input of each edge have."""
        return [(left.unlike, right.unlike) for left, right in self._pairs]

    @property
    def is_plain(self) -> bool:
        """Whether it is one edge, and its keys are their own numbers."""
        return len(self._pairs) == 1 and self._pairs[0][0].codes.is_plain

    def view(self) -> tuple[tuple[OrdinalKeys, OrdinalKeys], ...]:
        """The keys of the rows, left and right of each edge; they do not change."""
        return tuple((left.view(), right.view()) for left, right in self._pairs)

    def _check(self, inputs: Sequence[Rows], end: Int64Array, lineage: JoinLineage) -> None:
        """Rows that somebody wants are in."""
        for place, (rows, stop) in enumerate(zip(inputs, end.tolist(), strict=True)):
            wanted = lineage.wanted_of(place, rows.base, max(rows.base, stop))
            for index in self._at[place]:
                inside = index.is_in(rows.base, max(rows.base, stop))
                assert inside.all() if wanted is None else inside[wanted].all()
