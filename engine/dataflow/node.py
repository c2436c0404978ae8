"""Nodes of a graph: operators whose state and work the queries of a shape share.

A query is a *column* of its nodes. Whoever wants to know of a column says so; state of a column begins with
the next turn, from the rows that are there (:meth:`Node.standing`), and goes when nobody wants it any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engine.changes.context import EvaluationContext
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.delta import Delta, SetDelta
from engine.dataflow.turn import Turn
from engine.kernels import told as kernels
from engine.kernels.told import ItemLists
from engine.model.attributes import Attribute
from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.defects import refusal_of
from engine.model.source import SourceName
from engine.model.usage import Usage
from engine.operators.relation import Relation
from tureen.errors import TureenError

COLUMNS_MIN = 64
FEW_LEFT_MIN = 64
"""State for fewer columns is not made anew because most of them went."""
FEW_LEFT = 4
"""Few are left of so many times as many columns."""


class Columns:
    """Columns by number, counted by who wants them."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._wanted: Int32Array = np.zeros(capacities.first(COLUMNS_MIN), np.int32)
        self._few_min = capacities.first(FEW_LEFT_MIN)
        self.count = 0
        """How many are wanted."""
        self._most = 0
        """How many were at a time, since few were left."""

    def want(self, column: int) -> bool:
        """Returns whether nobody wanted it before."""
        while column >= len(self._wanted):
            self._wanted = np.concatenate([self._wanted, np.zeros_like(self._wanted)])
        self._wanted[column] += 1
        self.count += int(self._wanted[column] == 1)
        self._most = max(self._most, self.count)
        return bool(self._wanted[column] == 1)

    def leave(self, column: int) -> bool:
        """Returns whether nobody wants it any more."""
        self._wanted[column] -= 1
        self.count -= int(self._wanted[column] == 0)
        return bool(self._wanted[column] == 0)

    def few_left(self) -> bool:
        """Whether few are left of many, of so many as there are from now on: arrays are as long as they had
        to be for all.
        """
        if self._most < self._few_min or self.count * FEW_LEFT > self._most:
            return False
        self._most = self.count
        return True

    def of(self, delta: Delta) -> Delta:
        """The pairs of those that are wanted; rows of nobody go."""
        if self.count == 1 and len(delta.owners) == len(delta.temporal):
            column = int(np.argmax(self._wanted > 0))
            if bool((delta.owners == column).all()):
                return delta
        kept = ItemLists(np.empty_like(delta.starts), np.empty_like(delta.owners))
        count = kernels.of_columns(ItemLists(delta.starts, delta.owners), self._wanted, kept)
        if count < len(delta):
            delta = replace(delta, starts=kept.starts, owners=kept.items[:count])
        return delta.owned()

    def all(self) -> Int32Array:
        """Those that are wanted, ascending."""
        return np.flatnonzero(self._wanted).astype(np.int32)


class Node(ABC):
    """One operator. One writer.

    telling: places of columns of which no row enters while one that is equal in all of them leaves the same
    column at the same instant; None where that may be. id_words: how many words the id of a row has; 0: rows
    have none. ordered: whether ids, compared word by word, have the order of the relation. exits_known: a
    delta has rows that enter, ``valid_to`` when they will leave (FOREVER: that is not known), and that is not
    told again; a row that leaves earlier than was known is in a delta once more, as one that was there and
    leaves. entered: rows that came into what it gives since it was made, where it counts them; premature: how
    many of them left that before they left the input.
    """

    telling: frozenset[int] | None = None
    id_words = 0
    ordered = False
    exits_known = False
    entered = 0
    premature = 0
    sources: tuple[SourceName, ...] = ()
    """The sources whose rows a node without inputs takes; empty for others."""

    def __init__(self, *below: Node, settings: StateSettings | None = None) -> None:
        """settings: those of a node without inputs; others have the settings of their inputs."""
        self.settings: StateSettings = below[0].settings if below else settings or StateSettings()
        """What state is made with."""
        self.columns = Columns(self.settings.capacities)
        self.inputs = below
        self.refused: TureenError | None = None
        """Why nothing is known of this transition."""
        self.visited = 0
        """Rows that it looked at since it came."""
        self.entered = 0
        """Rows that came into the answer of a negation or an INTERSECT since the node was made."""
        self.premature = 0
        """How many of them left it before the exit of their own."""
        self.usage = Usage()
        self._turn: Turn | None = None
        self._delta: Delta | None = None

    def delta(self, turn: Turn) -> Delta:
        """What enters or leaves on a turn, of the columns that are wanted. Worked out once a turn; turns are
        taken in order, none left out. Raises TureenError, then on every later turn of the transition too.
        """
        if self._turn is not turn or self._delta is None:
            if self.refused is not None:
                raise self.refused
            laps = turn.context.laps
            if laps is not None:
                laps.enter(self.usage)
            try:
                self._delta = self._changed(turn)
            except Exception as error:
                self.refused = refusal_of(error)
                if self.refused is error:
                    raise
                raise self.refused from error
            finally:
                if laps is not None:
                    laps.leave()
            self._turn = turn
            self._meter(turn, self._delta)
        return self._delta

    def _meter(self, turn: Turn, given: Delta) -> None:
        """What moved on a turn. A row of several columns counts in each."""
        usage = self.usage
        usage.rows_out += len(given)
        usage.bytes_out += given.nbytes
        for node in self.inputs:
            taken = node._delta
            if node._turn is turn and taken is not None:
                usage.rows_in += len(taken)
                usage.bytes_in += taken.nbytes
        if not self.inputs:
            usage.rows_in += len(given)
            usage.bytes_in += given.nbytes

    def passed(self, rows: int, columns: int, columns_below: int) -> None:
        """Count rows that a node which keeps nothing gave without a turn, and those below it; as
        :meth:`delta` does.
        """
        usage, pair_bytes = self.usage, 12
        usage.rows_in += rows
        usage.rows_out += rows
        usage.bytes_in += rows * (8 * (columns_below + 2) + pair_bytes)
        usage.bytes_out += rows * (8 * (columns + 2) + pair_bytes)

    def begin(self, context: EvaluationContext) -> None:
        """A transition begins; the nodes below have begun it. State of columns that came since the last one
        is made. What is refused is raised by :meth:`delta`.
        """
        if context.laps is not None:
            context.laps.enter(self.usage)
        for node in self.inputs:
            if self.refused is None:
                self.refused = node.refused
        if self.refused is None:
            try:
                self._hydrate(context)
            except Exception as error:  # noqa: BLE001  (its queries are told)
                self.refused = refusal_of(error)
        if context.laps is not None:
            context.laps.leave()

    def rest(self) -> None:
        """A transition is over. State that did not go with all of it is made anew with the next."""
        if self.refused is not None:
            self.refused = None
            self.forget()
        self._turn = self._delta = None

    @abstractmethod
    def want(self, column: int) -> None:
        """Somebody wants to know of a column."""

    @abstractmethod
    def leave(self, column: int) -> None:
        """One of those does not any more."""

    def _hydrate(self, context: EvaluationContext) -> None:
        """Make the state of columns that came since the last transition."""
        return

    @abstractmethod
    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        """The rows of some columns, ascending, that are there at the beginning of a transition. To be asked
        before its first turn, of nodes that have begun it. At least one delta, perhaps without rows; instants
        mean nothing.
        """

    def standing_sets(self, context: EvaluationContext, columns: Int32Array) -> Iterator[SetDelta]:
        """As :meth:`standing`, by sets of columns, where many columns may have the same rows."""
        for delta in self.standing(context, columns):
            yield SetDelta(delta, None)

    @abstractmethod
    def _changed(self, turn: Turn) -> Delta: ...

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        """The values of rows by their ids, of a node with known exits, and of a scan or what selects,
        computes or joins rows of scans. To be asked for rows that are there at an instant of the transition.
        ids: int64[n, w], in any order.
        """
        raise NotImplementedError

    def forget(self) -> None:
        """What is kept is not true any more: it is made anew with the next turn."""
        return

    @property
    def state_work(self) -> Work:
        """What was done to the entries of what is kept, since it was made."""
        return Work()

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return 0

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it besides its usage."""
        work = self.state_work
        return (
            Attribute("kept_rows", self.rows, "rows that it keeps, of all queries"),
            Attribute("kept_bytes", self.nbytes, "what they take"),
            Attribute("columns", self.columns.count, "what its queries differ in"),
            Attribute("visited_rows", self.visited, "rows that it looked at"),
            Attribute("entries_inserted", work.inserted, "entries of its buffers that were put in"),
            Attribute("entries_deleted", work.deleted, "entries that were taken out"),
            Attribute("premature_rows", self.premature, "rows of a negation that left before their time"),
        )

    def _check(self) -> None:
        """What is kept holds together."""
        return


class UnaryNode(Node):
    """A node over one other whose columns are those of that."""

    def __init__(self, below: Node) -> None:
        super().__init__(below)
        self.below = below

    def want(self, column: int) -> None:
        if self.columns.want(column):
            self.below.want(column)
            self._came(column)

    def leave(self, column: int) -> None:
        if self.columns.leave(column):
            self.below.leave(column)
            self._went(column)

    def _came(self, column: int) -> None:
        """A column is wanted."""

    def _went(self, column: int) -> None:
        """A column is not wanted any more."""

    def _below(self, turn: Turn) -> Delta:
        """What the node below gives, of the columns that are wanted here, each row with an id of its own."""
        return self._passed(turn).apart()

    def _passed(self, turn: Turn) -> Delta:
        """What the node below gives, to be passed on by who reads no ids."""
        return self.columns.of(self.below.delta(turn))
