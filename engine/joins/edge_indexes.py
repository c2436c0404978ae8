"""The indexes that one shape is probed through: two for each edge, taken from those of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.joins.key_index import KeyIndex, KeyIndexes, OrdinalKeys
from engine.joins.shape import Shape
from engine.joins.steps import Ends
from engine.model.source import SourceName
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

    def __iter__(self) -> Iterator[KeyIndex]:
        """Each once for each edge that uses it."""
        for pair in self._pairs:
            yield from pair

    def close(self) -> None:
        """Give them back; they are not used any more."""
        for index in self:
            self.registry.give_back(index)

    def append(self, rows: Mapping[SourceName, Rows], ends: Mapping[SourceName, int]) -> None:
        """Take in the rows with ordinals below ``ends`` that are not in."""
        for index in self:
            index.append(rows[index.source], ends[index.source])

    def end_of(self, number: int, place: int) -> Ends:
        """The arrays of the end of an edge that lies at this input."""
        index = self._pairs[number][place == self._edges[number].right]
        return Ends(index.keys, index.back, index.table, index.first)

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
