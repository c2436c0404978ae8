"""Open and closed partial results of one measure, 64 slots a word.

A *state* is a tuple of arrays [..., 64], one or more numbers a slot: a count; a sum of whole numbers in two
limbs; a least or greatest value; sums of doubles and their squares (:mod:`.doubles`). Each kind of state has
an empty one that changes nothing when it is merged, so that every slot can be treated alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.kernels import partials
from engine.kernels.aggregates import LOW_BITS, LOW_MASK
from engine.language.aggregates import Statistic
from engine.operators.maintained.doubles import DoubleSums, State, Words
from engine.operators.maintained.measure import Measure, Operands

INT64 = np.iinfo(np.int64)
SMALL = 2**50
"""4,096 whole numbers up to here add up within 64 bits."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """empty: the dtype and the value of each array where there is no row. update: takes the bits of rows of
    one block, what :attr:`prepare` made of their operands, cut to these rows, and changes a word's state.
    merge: the state of left rows followed by right ones, elementwise.
    """

    empty: tuple[tuple[type[np.generic], float | int], ...]
    prepare: Callable[[Operands], tuple[npt.NDArray[Any], ...]]
    update: Callable[[Words, tuple[npt.NDArray[Any], ...], State], None]
    merge: Callable[[State, State], State]

    def new(self, *shape: int) -> State:
        """Empty states, [*shape, 64]."""
        return tuple(np.full((*shape, partials.SLOTS), value, dtype) for dtype, value in self.empty)

    def prepared(self, operands: Operands) -> tuple[Accumulator, tuple[npt.NDArray[Any], ...]]:
        """As :meth:`engine.operators.maintained.doubles.DoubleSums.prepared`: any values fit."""
        return self, self.prepare(operands)


def accumulator(measure: Measure) -> Accumulator | DoubleSums:
    """How a measure is kept."""
    match measure.statistic:
        case Statistic.COUNT | Statistic.ERRORS:
            return COUNT
        case Statistic.SUM:
            return WHOLE_SUM if measure.whole else DoubleSums(squares=False)
        case Statistic.LEAST:
            return WHOLE_LEAST if measure.whole else DOUBLE_LEAST
        case Statistic.GREATEST:
            return WHOLE_GREATEST if measure.whole else DOUBLE_GREATEST
        case Statistic.SPREAD:
            return DoubleSums(squares=True)
        case Statistic.FIRST | Statistic.LAST | Statistic.ALL | Statistic.VALUES:
            raise AssertionError(f"{measure.statistic} is not kept by parts")


def _whole(operands: Operands) -> tuple[npt.NDArray[Any], ...]:
    return (operands.whole(),)


def _doubles(operands: Operands) -> tuple[npt.NDArray[Any], ...]:
    return (operands.doubles(),)


def _count(bits: Words, values: tuple[npt.NDArray[Any], ...], state: State) -> None:
    partials.count(bits, state[0])


def _limbs(operands: Operands) -> tuple[npt.NDArray[Any], ...]:
    """Values that are small as they are, others in two limbs."""
    values = operands.whole()
    if not len(values) or (values.min() > -SMALL and values.max() < SMALL):
        return (values,)
    return values >> LOW_BITS, values & LOW_MASK


def _add_whole(bits: Words, values: tuple[npt.NDArray[Any], ...], state: State) -> None:
    high, low = state
    if len(values) == 2:
        partials.add_whole(bits, values[0], high)
    partials.add_whole(bits, values[-1], low)


def _carry(high: npt.NDArray[Any], low: npt.NDArray[Any]) -> State:
    return high + (low >> LOW_BITS), low & LOW_MASK


def _merge_added(left: State, right: State) -> State:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _merge_limbs(left: State, right: State) -> State:
    return _carry(left[0] + right[0] + (right[1] >> LOW_BITS), left[1] + (right[1] & LOW_MASK))


def _merge_least(left: State, right: State) -> State:
    a, b = left[0], right[0]
    return (np.where((b < a) | (a != a), b, a),)


def _merge_greatest(left: State, right: State) -> State:
    a, b = left[0], right[0]
    return (np.where((b > a) | ((b != b) & (a == a)), b, a),)


COUNT = Accumulator(((np.int64, 0),), lambda operands: (), _count, _merge_added)
WHOLE_SUM = Accumulator(((np.int64, 0), (np.int64, 0)), _limbs, _add_whole, _merge_limbs)
DOUBLE_LEAST = Accumulator(
    ((np.float64, np.nan),),
    _doubles,
    lambda bits, values, state: partials.least_doubles(bits, values[0], state[0]),
    _merge_least,
)
DOUBLE_GREATEST = Accumulator(
    ((np.float64, -np.inf),),
    _doubles,
    lambda bits, values, state: partials.greatest_doubles(bits, values[0], state[0]),
    _merge_greatest,
)
WHOLE_LEAST = Accumulator(
    ((np.int64, INT64.max),),
    _whole,
    lambda bits, values, state: partials.least_whole(bits, values[0], state[0]),
    _merge_least,
)
WHOLE_GREATEST = Accumulator(
    ((np.int64, INT64.min),),
    _whole,
    lambda bits, values, state: partials.greatest_whole(bits, values[0], state[0]),
    _merge_greatest,
)
