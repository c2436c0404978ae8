"""Aggregates that add up: the whole numbers of a state, what a row adds to them, what calls make of them.

    n        how many rows there are, for all calls
    COUNT    how many rows count for an argument and its filter
    SUM      of whole numbers and decimals their total in two limbs; of doubles the totals of their digits
             (:mod:`engine.kernels.digits`), as many as values came to need
    VAR      of doubles the digits of their squares too

All of it is exact, so a row that leaves is subtracted, and rounding is done once, when a value is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.kernels import cells as kernels
from engine.kernels import digits
from engine.kernels.aggregates import LOW_BITS, LOW_MASK
from engine.kernels.exact import INFINITY, MANTISSA
from engine.language.aggregates import Statistic
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.expressions import Expression
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregates import moments, totals
from engine.operators.aggregates.members import select
from engine.operators.relation import Relation

ROWS = 0
"""The place of the number of rows in a state."""
CARRY_AT = 1 << 60
"""Digits whose totals are as large are brought back. A fold adds less than as much again."""

Cut = Callable[[Int64Array, int, Int64Array], None]


@dataclass(slots=True)
class _Planes:
    """Where in a state the totals of digits are, by digit."""

    cut: Cut
    places: dict[int, int] = field(default_factory=dict)

    def arrays(self) -> tuple[Int64Array, Int64Array]:
        """(places, digits), by digit."""
        found = sorted(self.places)
        return np.array([self.places[digit] for digit in found], np.int64), np.array(found, np.int64)


@dataclass(slots=True)
class _Argument:
    """What calls are over. count: the place of how many rows count. whole: the places of two limbs. sums,
    squares: of doubles. odd: the places of the counts of NaN, +Infinity and -Infinity.
    """

    of_rows: tuple[Expression, ...]
    condition: Expression | None
    count: int
    whole: tuple[int, int] | None = None
    sums: _Planes | None = None
    squares: _Planes | None = None
    odd: list[int] = field(default_factory=list)


class Totals:
    """The states of some calls. They widen as values come that need more digits; one writer."""

    def __init__(self, calls: Sequence[AggregateCall]) -> None:
        self._calls = calls
        self._arguments: dict[tuple[tuple[Expression, ...], Expression | None], _Argument] = {}
        self.width = 1
        for call in calls:
            self._prepare(call)

    def _prepare(self, call: AggregateCall) -> None:
        argument = self._argument(call)
        if call.aggregate.statistic is Statistic.COUNT:
            return
        spreads = call.aggregate.statistic is Statistic.SPREAD
        if spreads or call.arguments[0].type.kind is Kind.DOUBLE:
            if argument.sums is None:
                argument.sums = _Planes(digits.to_digits)
            if spreads and argument.squares is None:
                argument.squares = _Planes(digits.to_square_digits)
        elif argument.whole is None:
            argument.whole = self._place(), self._place()

    def _argument(self, call: AggregateCall) -> _Argument:
        of = (call.of_rows, call.filter)
        known = self._arguments.get(of)
        if known is None:
            count = ROWS if of == ((), None) else self._place()
            known = self._arguments[of] = _Argument(*of, count)
        return known

    @property
    def has_digits(self) -> bool:
        """Whether a call is over doubles."""
        return any(argument.sums is not None for argument in self._arguments.values())

    def _place(self) -> int:
        self.width += 1
        return self.width - 1

    # --- what rows add ----------------------------------------------------------------------------

    def values(self, relation: Relation) -> Int64Array:
        """int64[n, width]: what each row adds. Widens states where a value needs it."""
        n = len(relation)
        found: dict[int, Int64Array] = {ROWS: np.ones(n, np.int64)}
        for argument in self._arguments.values():
            if argument.count != ROWS or argument.whole or argument.sums:
                found.update(self._of_argument(argument, relation, n))
        values = np.zeros((n, self.width), np.int64)
        for place, column in found.items():
            values[:, place] = column
        return values

    def _of_argument(
        self, argument: _Argument, relation: Relation, n: int
    ) -> Iterator[tuple[int, Int64Array]]:
        members, _ = select(relation, argument.of_rows, argument.condition, False, np.arange(n), n)
        rows = members.codes
        assert rows is not None

        def by_row(values: Int64Array) -> Int64Array:
            if len(rows) == n:
                return values
            spread = np.zeros(n, np.int64)
            spread[rows] = values
            return spread

        if argument.count != ROWS:
            yield argument.count, by_row(np.ones(len(rows), np.int64))
        if argument.whole is not None:
            values = members.values.values.astype(np.int64, copy=False)
            yield argument.whole[0], by_row(values >> LOW_BITS)
            yield argument.whole[1], by_row(values & LOW_MASK)
        if argument.sums is not None:
            bits = moments.doubles(members.values).view(np.int64)
            for place, values in self._digits(argument, bits):
                yield place, by_row(values)

    def _digits(self, argument: _Argument, bits: Int64Array) -> Iterator[tuple[int, Int64Array]]:
        low, high, square_low, square_high, odd = digits.digits_needed(bits)
        for planes, first, last in (
            (argument.sums, low, high),
            (argument.squares, square_low, square_high),
        ):
            if planes is None or last < first:
                continue
            cut = np.zeros((int(last) + 1 - int(first), len(bits)), np.int64)
            planes.cut(bits, int(first), cut)
            for digit, values in enumerate(cut, int(first)):
                yield self._plane(planes, digit), values
        if odd:
            if not argument.odd:
                argument.odd = [self._place() for _ in range(3)]
            for place, is_odd in zip(argument.odd, _odd(bits), strict=True):
                yield place, is_odd.astype(np.int64)

    def _plane(self, planes: _Planes, digit: int) -> int:
        if digit not in planes.places:
            planes.places[digit] = self._place()
        return planes.places[digit]

    # --- digits that grow -------------------------------------------------------------------------

    def full(self, states: Int64Array) -> list[Int64Array]:
        """Finds the digits whose totals have grown large in some of these states. Returns runs of their
        places, ascending by digit, which are to be carried (:func:`engine.kernels.cells.carry`). States may
        be wider then. Mostly there are no runs.
        """
        runs: list[Int64Array] = []
        for argument in self._arguments.values():
            for planes in (argument.sums, argument.squares):
                if planes is None or not planes.places:
                    continue
                if kernels.largest(states, planes.arrays()[0]) >= CARRY_AT:
                    for digit in range(min(planes.places), max(planes.places) + 2):
                        self._plane(planes, digit)
                    runs.append(planes.arrays()[0])
        return runs

    # --- what calls make of states ----------------------------------------------------------------

    def columns(self, states: Int64Array) -> list[Column]:
        """A column a call. states: int64[n, width]."""
        return [self._column(call, states) for call in self._calls]

    def _column(self, call: AggregateCall, states: Int64Array) -> Column:
        argument = self._argument(call)
        counts = np.ascontiguousarray(states[:, argument.count])
        if call.aggregate.statistic is Statistic.COUNT:
            return Column(BIGINT, counts)
        if call.aggregate.statistic is Statistic.SPREAD:
            return moments.finished(_variances(argument, states, moments.less(call)), counts, call)
        some: BoolArray = counts > 0
        valid = None if some.all() else some
        if argument.whole is None:
            return Column(DOUBLE, _sums(argument, states, means=call.aggregate.is_mean), valid)
        below = states[:, argument.whole[1]]
        high, low = states[:, argument.whole[0]] + (below >> LOW_BITS), below & LOW_MASK
        if call.aggregate.is_mean:
            return Column(DOUBLE, totals.quotients(high, low, counts, call.arguments[0].type.scale), valid)
        return totals.fitted(high, low, counts, call.type)[0]


def _odd(bits: Int64Array) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Which doubles are NaN, +Infinity, -Infinity."""
    odd, whole = bits & INFINITY == INFINITY, bits & MANTISSA == 0
    return odd & ~whole, odd & whole & (bits > 0), odd & whole & (bits < 0)


def _sums(argument: _Argument, states: Int64Array, *, means: bool) -> np.ndarray:
    assert argument.sums is not None
    out = np.empty(len(states), np.int64)
    odd = np.array(argument.odd, np.int64)
    kernels.double_sums(states, *argument.sums.arrays(), odd, argument.count, means, out)
    return out.view(np.float64)


def _variances(argument: _Argument, states: Int64Array, less: int) -> np.ndarray:
    assert argument.sums is not None
    assert argument.squares is not None
    out = np.empty(len(states), np.int64)
    odd = np.array(argument.odd, np.int64)
    planes = (*argument.sums.arrays(), *argument.squares.arrays())
    kernels.double_variances(states, *planes, odd, argument.count, less, out)
    return out.view(np.float64)
