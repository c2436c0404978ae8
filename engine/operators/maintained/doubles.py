"""Partial sums of doubles for 64 slots at once, exact: values cut into digits, one array of totals a digit.

Which digits there are is found from the values: mostly two or three, more once values of very different size
came. So a state's arrays are those of its *planes*, and it grows by a plane of zeros when one is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.kernels import digits, exact, partials, window_totals
from engine.kernels.window_totals import window_parts
from engine.model.batch import Int64Array
from engine.operators.maintained.measure import Operands

State = tuple[npt.NDArray[Any], ...]
Words = npt.NDArray[np.uint64]

ODD = 1 << 10
"""The plane that counts values that are not finite; above all digits."""
NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, order=True)
class Plane:
    """power: 1 of values, 2 of their squares. digit: see :mod:`engine.kernels.digits`."""

    power: int
    digit: int


COMMON = (Plane(1, 24), Plane(1, 25))
"""The digits of numbers from 1 to a thousand, which there are from the beginning."""


@dataclass(frozen=True, slots=True)
class DoubleSums:
    """Sums of values and, with ``squares``, of their squares. planes: ascending, an array of a state each."""

    squares: bool
    planes: tuple[Plane, ...] = COMMON

    def new(self, *shape: int) -> State:
        """Empty states, int64[*shape, 64] each."""
        return tuple(np.zeros((*shape, partials.SLOTS), np.int64) for _ in self.planes)

    def united(self, planes: set[Plane]) -> DoubleSums:
        """This, with more planes."""
        if planes <= set(self.planes):
            return self
        return DoubleSums(self.squares, tuple(sorted(planes | set(self.planes))))

    def adopted(self, state: State, of: DoubleSums) -> State:
        """A state of fewer planes as one of these."""
        held = dict(zip(of.planes, state, strict=True))
        shape = state[0].shape
        return tuple(held[plane] if plane in held else np.zeros(shape, np.int64) for plane in self.planes)

    def prepared(self, operands: Operands) -> tuple[DoubleSums, tuple[npt.NDArray[Any], ...]]:
        """This, with the planes that some values need, and what each plane is to add, int64[n]; empty:
        nothing.
        """
        bits = operands.doubles().view(np.int64)
        *ends, odd = digits.digits_needed(bits)
        low, high, square_low, square_high = map(int, ends)
        found = _cut(1, low, high, digits.to_digits, bits)
        if self.squares:
            found |= _cut(2, square_low, square_high, digits.to_square_digits, bits)
        if odd:
            counts = found[Plane(1, ODD)] = np.empty(len(bits), np.int64)
            digits.to_odd(bits, counts)
        kind = self.united(set(found))
        return kind, tuple(found.get(plane, NOTHING) for plane in kind.planes)

    def update(self, bits: Words, values: tuple[npt.NDArray[Any], ...], state: State) -> None:
        """Rows of one block enter a word's states."""
        for each, total in zip(values, state, strict=True):
            if len(each):
                partials.add_whole(bits, each, total)

    def merge(self, left: State, right: State) -> State:
        return tuple(a + b for a, b in zip(left, right, strict=True))


def _cut(
    power: int,
    low: int,
    high: int,
    to_digits: Callable[[Int64Array, int, Int64Array], None],
    bits: Int64Array,
) -> dict[Plane, npt.NDArray[Any]]:
    """The digits low to high of some values, int64[n] each."""
    made = np.zeros((high + 1 - low, len(bits)), np.int64)
    to_digits(bits, low, made)
    return {Plane(power, low + place): each for place, each in enumerate(made)}


class WindowSums:
    """The exact sums of a window: what its whole blocks hold, and its other rows."""

    def __init__(self) -> None:
        self._limbs = np.zeros(exact.LIMBS, np.int64)
        self._span = np.array([exact.LIMBS, -1])
        self._squares = np.zeros(exact.SQUARES_LIMBS, np.int64)
        self._squares_span = np.array([exact.SQUARES_LIMBS, -1])
        self._odd = np.zeros(3, np.int64)

    def add_blocks(
        self,
        kind: DoubleSums,
        blocks: State,
        above: State,
        place: int,
        slot: int,
        first: int,
        inner: Int64Array,
    ) -> None:
        """Add what whole blocks hold; the rest as :mod:`engine.kernels.window_totals` takes it."""
        for plane, block, node in zip(kind.planes, blocks, above, strict=True):
            parts = window_parts(block, node, place, slot, first, inner)
            if plane.digit == ODD:
                counted = (parts[:, None] >> (digits.ODD_BITS * np.arange(3))) & ((1 << digits.ODD_BITS) - 1)
                self._odd += counted.sum(axis=0)
                continue
            into = (self._limbs, self._span) if plane.power == 1 else (self._squares, self._squares_span)
            window_totals.put_parts(parts, plane.digit * digits.DIGIT_BITS, *into)

    def add(self, values: npt.NDArray[np.float64], *, squares: bool = False) -> None:
        """Add values, and their squares."""
        bits = values.view(np.int64)
        if squares:
            exact.add_all(self._limbs, self._span, self._squares, self._squares_span, self._odd, bits)
        else:
            exact.add_run(self._limbs, self._span, self._odd, bits)

    def total(self) -> npt.NDArray[np.float64]:
        """float64[1], rounded once."""
        return _double(exact.total(self._limbs, self._span, self._odd, np.empty_like(self._limbs)))

    def mean(self, count: int) -> npt.NDArray[np.float64]:
        """float64[1]; 0.0 of no rows."""
        if not count:
            return np.zeros(1)
        return _double(exact.mean(self._limbs, self._span, self._odd, count, np.empty_like(self._limbs)))

    def variance(self, count: int, less: int) -> npt.NDArray[np.float64]:
        """float64[1]; 0.0 of no more than ``less`` rows."""
        if count <= less:
            return np.zeros(1)
        scratch = np.empty((3, exact.SQUARES_LIMBS), np.int64)
        sums = (self._limbs, self._span, self._squares, self._squares_span)
        return _double(exact.variance(*sums, self._odd, count, less, scratch))


def _double(bits: int | np.int64) -> npt.NDArray[np.float64]:
    return np.array([bits], np.int64).view(np.float64)
