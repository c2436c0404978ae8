"""Inner joins that let go of rows which can have no partner any more, by the constraints of streams.

A row is *yes* where all that it may meet was met, *no* where it can meet nothing any more, else *unknown*:
only those are kept. In a tree of joins the pairs of one are rows of the one above it, so that each waits in
one place (S. Babu, U. Srivastava, J. Widom, TODS 2004, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from engine.changes.context import EvaluationContext
from engine.dataflow.arrangements.keyed_rows import KeyedRows
from engine.dataflow.arrangements.owned_rows import OwnedRows
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.held_scan import HeldScanNode
from engine.dataflow.operators.join import InnerJoinNode, MatchedSlots, Matching, Moved, waiting
from engine.dataflow.operators.rows import ConditionNode, FilterNode, ProjectNode
from engine.dataflow.releases.release import Releases
from engine.dataflow.releases.side import ReleaseSide
from engine.dataflow.turn import Turn
from engine.model import expressions as ex
from engine.model.attributes import Attribute
from engine.model.batch import Int32Array, Int64Array
from engine.model.source import SourceName


class ReleasingJoinNode(InnerJoinNode):
    """Rows of its scans enter and never leave. released: how many rows were let go of."""

    def __init__(self, left: Node, right: Node, matching: Matching, releases: Releases) -> None:
        self._releases = releases
        self.released = 0
        super().__init__(left, right, matching)

    def forget(self) -> None:
        super().forget()
        self._sides = self._side(0, self._left_rows, self.right), self._side(1, self._right_rows, self.left)

    @property
    def is_coming(self) -> bool:
        """Whether state of some column is to be made yet."""
        return bool(self._coming)

    def _side(self, side: int, rows: OwnedRows, other: Node) -> ReleaseSide:
        assert isinstance(rows, KeyedRows)
        keys = [pair[1 - side] for pair in self._matching.keys]
        places = [key.index for key in keys if isinstance(key, ex.Column)]
        return ReleaseSide(self._releases[side], rows, self._keys, partial(waiting, other, places))

    # --- rows -------------------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        comes = bool(self._coming)
        super()._hydrate(context)
        if comes:  # pairs of rows that are there were met before
            for _ in self._candidates(Turn.beginning(context), self._left_rows.slots(), of_left=True):
                pass

    def _candidates(
        self, turn: Turn, slots: Int32Array, *, of_left: bool, staying: bool = False
    ) -> Iterator[MatchedSlots]:
        left, right = self._sides
        for pairs in super()._candidates(turn, slots, of_left=of_left, staying=staying):
            left.meet(pairs.left, pairs.starts, pairs.owners)
            right.meet(pairs.right, pairs.starts, pairs.owners)
            yield pairs

    def _given(self, turn: Turn, left: Moved, right: Moved) -> Delta:
        for side, moved in zip(self._sides, (left, right), strict=True):
            side.enter(moved.slots, moved.delta.temporal.valid_from)
        return super()._given(turn, left, right)

    def rest(self) -> None:
        context, is_whole = self._context, self.refused is None
        super().rest()
        if context is None or not is_whole:
            return
        before = self.rows
        for side in self._sides:
            side.let_go(context.transition)
        self.released += before - self.rows

    # --- what is kept -----------------------------------------------------------------------------

    def needs(self, source: SourceName) -> list[Int64Array]:
        """The ordinals of the rows of a stream that it keeps, perhaps several times."""
        found = []
        for node, rows in ((self.left, self._left_rows), (self.right, self._right_rows)):
            ids = rows.ids_of(rows.slots())
            found += [ids[:, word] for word, of in enumerate(sources_of(node)) if of == source]
        return found

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(side.nbytes for side in self._sides)

    def attributes(self) -> tuple[Attribute, ...]:
        rows = self.rows
        each = self.nbytes // rows if rows else 0
        return (
            *super().attributes(),
            Attribute("released_rows", self.released, "rows that constraints let go of"),
            Attribute("released_bytes", self.released * each, "what they would take, as the others do"),
        )

    def _check(self) -> None:
        super()._check()
        for side in self._sides:
            side._check()


def joins_of(node: Node) -> list[ReleasingJoinNode]:
    """The joins that let go of rows of a node and of those below it: state of one is made from that of those
    below it as long as these have all rows, so they are forgotten together.
    """
    joins = [join for below in node.inputs for join in joins_of(below)]
    return [node, *joins] if isinstance(node, ReleasingJoinNode) else joins


def sources_of(node: Node) -> list[SourceName]:
    """The streams whose ordinals the words of the ids of a node are."""
    match node:
        case HeldScanNode():
            return [node.kind.source]
        case ProjectNode() | FilterNode() | ConditionNode():
            return sources_of(node.below)
        case ReleasingJoinNode():
            return [*sources_of(node.left), *sources_of(node.right)]
    raise AssertionError(node)
