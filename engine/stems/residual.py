"""Predicates that no index holds, as modules that run on surviving rows only.

One module for each distinct predicate, shared by every query that has it as a conjunct: it is
evaluated once for the rows that any of them still wants.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from engine.eddy.flight import Flight, Needs
from engine.eddy.policies import Visit
from engine.kernels import bitmaps, lineage
from engine.language.evaluate import truth
from engine.model.batch import Int32Array, Int64Array
from engine.model.expressions import Expression, UserFunction, children, user_functions
from engine.model.lazy_columns import LazyColumns
from engine.model.types import Kind

NODE_WORK = 8.0
STRING_WORK = 250.0
USER_WORK = 500.0
"""The work of a node, of one that reads or makes a string, and of a user's function, for a row, in about
nanoseconds, where no timer measures it. Numbers take less, a twentieth; strings may take five times as long.
"""

UNKNOWN_NS = 10e6
"""What a row may take of a user's function that was never called: it first meets the rows that are left when
all else is done, however selective it will turn out to be.
"""

NOTHING = Visit(0, 0, 0, 0.0)


class ResidualPredicate:
    """A predicate and the slots of the queries that share it, dense ones and selective ones."""

    __slots__ = ("_bits", "_nodes_work", "_selective", "_users", "dense", "name", "predicate", "selective")

    def __init__(
        self, name: str, predicate: Expression, dense: Iterable[int] = (), selective: Iterable[int] = ()
    ) -> None:
        self.name = name
        self.predicate = predicate
        self.dense = set(dense)
        self.selective = set(selective)
        self._users = tuple(user_functions(predicate))
        self._nodes_work = _nodes(predicate)
        self.changed()

    @property
    def queries(self) -> int:
        """Slots that share it."""
        return len(self.dense) + len(self.selective)

    @property
    def work(self) -> float:
        """What a row takes, in about nanoseconds; calls of users' functions as they were measured lately."""
        return self._nodes_work + _calls_work(self._users)

    @property
    def users(self) -> tuple[UserFunction, ...]:
        """The users' functions that it calls."""
        return self._users

    @property
    def measured_ns(self) -> float | None:
        """What the calls of users' functions for a row took lately; None: there are none, or none was
        measured.
        """
        costs = [one.meter.cost_ns for one in self._users]
        return None if not costs or None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def expected_ns(self) -> float | None:
        """As :meth:`work` where it calls users' functions, which others may have called."""
        if not self._users:
            return None
        return self.work if all(one.meter.rows for one in self._users) else UNKNOWN_NS

    def changed(self) -> None:
        """Sharers came, went or have other places."""
        self._bits: tuple[npt.NDArray[np.int64], bitmaps.Words] | None = None
        self._selective: Int32Array | None = None

    def drop(self, slot: int) -> None:
        """A sharer goes."""
        self.dense.discard(slot)
        self.selective.discard(slot)
        self.changed()

    def needs(self, flight: Flight) -> Needs:
        """The bits of its dense sharers."""
        return flight.columns_of(*self.bits(flight.places))

    def bits(self, places: Int32Array) -> tuple[Int64Array, bitmaps.Words]:
        """(words, masks): the bits of its dense sharers. places: by slot."""
        if self._bits is None:
            self._bits = _masks(self.dense, places)
            self._selective = np.array(sorted(self.selective), np.int32)
        return self._bits

    def wanting(self, flight: Flight) -> Int64Array:
        """Places in the batch, ascending."""
        of_bits = flight.places_of(flight.wanting(self.needs(flight)))
        return self._rows(of_bits, flight.pairs.rows[self._pairs(flight)])

    def visit(self, flight: Flight) -> Visit:
        """End the sharers' wish for rows where the predicate is FALSE or NULL; note where it is an error."""
        needs = self.needs(flight)
        wanting = flight.wanting(needs)
        of_bits = flight.places_of(wanting)
        mine = self._pairs(flight)
        of_pairs = flight.pairs.rows[mine]
        rows = self._rows(of_bits, of_pairs)
        if not len(rows):
            return NOTHING
        columns = LazyColumns(len(flight.rows.columns), lambda index: flight.column(index).take(rows))
        true, error = truth(self.predicate, columns, len(rows))
        keep = true if error is None else true | error
        kept = keep if len(rows) == len(of_bits) else keep[np.searchsorted(rows, of_bits)]
        ended = lineage.refuse(flight.wanted, *needs, wanting[~kept])
        place = np.searchsorted(rows, of_pairs)
        flight.alive[mine] = keep[place]
        ended += len(mine) - int(np.count_nonzero(keep[place]))
        if error is not None and error.any():
            flight.in_error[mine] |= error[place]
            for slot in self.dense:
                erring = flight.erring.get(slot)
                if erring is None:
                    erring = flight.erring[slot] = np.zeros(len(flight.rows), np.bool_)
                erring[rows[error]] = True
        errors = 0 if error is None else int(np.count_nonzero(error))
        return Visit(len(rows), int(np.count_nonzero(keep)), ended, self.work * len(rows), errors)

    def _rows(self, of_bits: Int64Array, of_pairs: npt.NDArray[np.uint16]) -> Int64Array:
        """The rows of both, ascending, each once."""
        return np.union1d(of_bits, of_pairs).astype(np.int64) if len(of_pairs) else of_bits

    def _pairs(self, flight: Flight) -> Int64Array:
        """Which pairs in flight are of a sharer."""
        if not self.selective or not len(flight.pairs):
            return np.zeros(0, np.int64)
        assert self._selective is not None
        return np.flatnonzero(flight.alive & np.isin(flight.pairs.slots, self._selective))


def work(expression: Expression) -> float:
    """The work of an expression for a row, in about nanoseconds. O(nodes)."""
    return _calls_work(user_functions(expression)) + _nodes(expression)


def _calls_work(functions: Iterable[UserFunction]) -> float:
    """The work of calls, as it was measured lately."""
    return sum(one.meter.cost_ns or USER_WORK for one in functions)


def _nodes(expression: Expression) -> float:
    """The work of its nodes for a row, in about nanoseconds. O(nodes)."""
    below = children(expression)
    strings = any(node.type.kind is Kind.STRING for node in (expression, *below)) and bool(below)
    return (STRING_WORK if strings else NODE_WORK) + sum(map(_nodes, below))


def _masks(slots: Iterable[int], places: Int32Array) -> tuple[npt.NDArray[np.int64], bitmaps.Words]:
    """The words that hold these slots and which bits of each."""
    by_word: dict[int, int] = {}
    for slot in slots:
        place = int(places[slot])
        by_word[place >> 6] = by_word.get(place >> 6, 0) | (1 << (place & 63))
    words = sorted(by_word)
    return np.array(words, np.int64), np.array([by_word[w] for w in words], np.uint64)
