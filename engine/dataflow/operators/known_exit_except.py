"""EXCEPT ALL over rows whose exits are known, for 64 queries at a time.

Left rows are kept once, as their ids and exits, and so are right rows whose exits are known; a word of bits
says for which of 64 queries a row is there, another in whose answer it is
(:mod:`engine.dataflow.arrangements.except_rows`). A row of the answer leaves with its own exit, or before it,
when a right row takes it away: what negation is about. Expiry follows the instants of the turn.

Cost: O(1) a row and word of columns that have it, amortised, and a change of an answer; and that of the
buffers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.except_rows import ExceptInput, ExceptRows
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.dataflow.kept_columns import KeepsColumns
from engine.dataflow.node import Node
from engine.dataflow.operators.join import Kept
from engine.dataflow.operators.set_rows import LeftRows
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.turn import Turn
from engine.kernels import column_words
from engine.kernels import except_words as kernels
from engine.kernels.column_words import UInt64Array
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.operators.distinct import with_plain_zeros
from engine.operators.relation import Relation


class KnownExitExceptNode(KeepsColumns, TwoInputs):
    """EXCEPT ALL [ON]. Its left input has known exits. The id of a row is that of the left row, and its
    column; its values are those of the left row.

    Where all columns are compared nobody sees which rows of a value are in the answer: it is those that leave
    first, so that a left row that leaves takes no other with it. Otherwise it is the youngest, by their ids,
    which have the order of the relation.
    """

    def __init__(self, left: Node, right: Node, shape: LeftRows, kept: Kept, *, tells: bool = False) -> None:
        """kept: how the rows of both are kept; None of a right input without known exits. tells: all exits
        are told when they happen.
        """
        super().__init__(left, right)
        assert left.exits_known
        assert right.exits_known == (kept[1] is not None)
        self._shape = shape
        self._kept = kept
        self._width = 0
        self.exits_known = not tells
        self.id_words = left.id_words + 1
        self.ordered = left.ordered
        self.forget()

    def forget(self) -> None:
        self._forget_columns()
        on, (left, right) = self._shape.compared.on, self._kept
        self._state = ExceptRows(
            ExceptInput(self.left.id_words, tuple(place for place, _ in on), left),
            ExceptInput(self.right.id_words, tuple(place for _, place in on), right),
            self._shape.compared.types,
            self.settings,
            by_exit=self._shape.whole,
        )

    def _drop(self, columns: Int32Array) -> None:
        self._state.drop(columns)

    # --- rows that stand --------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        if not self._coming:
            return
        columns = self._newly_wanted()
        left, right = self._over_of(columns)
        for standing in self.left.standing(context, left.below):
            delta = left.spread(standing).owned()
            self._width = len(delta.temporal.relation.columns)
            self._stand(delta, of_left=True)
        for standing in self.right.standing(context, right.below):
            self._stand(right.spread(standing).owned(), of_left=False)
        self.entered += self._state.settle(columns)

    def _stand(self, delta: Delta, *, of_left: bool) -> None:
        self.visited += len(delta.temporal)
        self._state.stand(delta, of_left=of_left)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        entries, bits = self._state.inside(columns)
        rows, slots = self._state.left, self._state.entries.slots[entries]
        life = np.full(len(entries), kernels.NEVER), rows.exits[slots]
        yield self._given(context, entries, bits, *life).apart()

    # --- rows that move ---------------------------------------------------------------------------

    def _changed(self, turn: Turn) -> Delta:
        left, right = self._below(turn)
        self._width = len(left.temporal.relation.columns)
        self.visited += len(left.temporal) + len(right.temporal)
        made = self._state.fold(left, right, turn.interval, tells=not self.exits_known)
        self.entered += int(made.state[kernels.ENTERED])
        self.premature += int(made.state[kernels.PREMATURE])
        count = int(made.state[kernels.FILLED])
        life = made.valid_from[:count], made.valid_to[:count]
        given = self._given(turn.context, made.entries[:count], made.bits[:count], *life)
        self._state.released()
        return given

    def _given(
        self,
        context: EvaluationContext,
        entries: Int32Array,
        bits: UInt64Array,
        *life: Int64Array,
    ) -> Delta:
        """Entries, each in the answers of some columns of its word, perhaps of some that nobody wants any
        more.
        """
        held = self._state.entries
        ids, words = self._state.left.ids[held.slots[entries]], self._state.words_of(held.cells[entries])
        starts = np.empty(len(words) + 1, np.int64)
        column_words.count(bits, starts)
        owners = np.empty(int(starts[-1]), np.int32)
        column_words.spell(words, bits, owners)
        read: list[Relation] = []

        def make(place: int) -> Column:
            if not read:
                read.append(self.read(context, ids))
            return read[0].columns[place]

        relation = Relation(LazyColumns(self._width, make), len(ids))
        delta = Delta(TemporalRelation(relation, *life), starts, owners, lambda: ids, by_column=True)
        return self.columns.of(delta) if self._dead else delta

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        found = self.left.read(context, np.ascontiguousarray(ids[:, : self.left.id_words]))
        return with_plain_zeros(found) if self._shape.whole else found

    # --- what is kept -----------------------------------------------------------------------------

    @property
    def state_work(self) -> Work:
        """Work on the rows of both inputs, and their looks at the counts of values. negative: how many rows
        of the answer left before their exit.
        """
        return self._state.work + Work(negative=self.premature)

    @property
    def rows(self) -> int:
        return len(self._state)

    @property
    def nbytes(self) -> int:
        return self._state.nbytes

    def _check(self) -> None:
        self._state._check()
