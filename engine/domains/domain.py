"""One attribute's domain as 64-bit integers: what the indexes of the Query SteM compare.

A *key* is an int64 that orders as the values do. Every interval of the domain has both its ends among them:
``low <= key <= last``. Numbers, instants and booleans are their own keys (a DECIMAL unscaled); doubles are
their bits, made to ascend; strings get labels.

Labels. Each string that some predicate names has an even label, in the order of the strings, and the odd one
above it stands for everything between it and the next. So a constant keeps its label when others
come, and an index is not touched by them. A gap that is full makes all labels be dealt anew
(:meth:`StringDomain.moved` tells): rare, since they begin 2**40 apart.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from sortedcontainers import SortedList

from engine.domains.named_strings import NamedStrings
from engine.domains.regions import ABOVE, BELOW, Key, Region
from engine.kernels.intervals import NAN_KEY, keys_of_doubles
from engine.model.batch import Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Kind, Type

KEY_MIN = -(2**63)
KEY_MAX = 2**63 - 1
KEPT_MIN = 1_024
"""The strings that may be named, at least, before those without a use go."""

KeyInterval = tuple[int, int]
"""(low, last), both in it."""

STEP = 1 << 40
NEAR = 1 << 20


class Domain:
    """Keys of an attribute whose values are numbers, instants or booleans."""

    wants_sweep = False

    def __init__(self, type_: Type) -> None:
        self.type = type_
        self.double = type_.kind is Kind.DOUBLE

    def name(self, region: Region) -> None:
        """Name the constants of a region, which will be asked for; afterwards keys given before may have
        moved (see ``moves``).
        """

    def intervals(self, region: Region) -> tuple[KeyInterval, ...]:
        """The intervals of a named region as keys, ascending."""
        key = self._key
        return tuple(
            [
                (KEY_MIN if start is BELOW else key(start), KEY_MAX if stop is ABOVE else key(stop) - 1)
                for start, stop in region.intervals
            ]
        )

    def _key(self, value: Key) -> int:
        return _double_key(value) if self.double else int(value)

    def keys(self, column: Column, out: Int64Array) -> None:
        """Write the key of each row; what stands where a row is NULL means nothing. O(rows)."""
        values = column.values
        if self.double:
            keys_of_doubles(values, values.view(np.int64), out)
        elif values.dtype == np.bool_:
            out[:] = values.view(np.int8)
        else:
            out[:] = values

    def text(self, interval: KeyInterval) -> str:
        """An interval as people read it."""
        low, last = interval
        if low == last:
            return f"= {self._value(low)}"
        if low == KEY_MIN:
            return "any value" if last == KEY_MAX else f"<= {self._value(last)}"
        return f">= {self._value(low)}" if last == KEY_MAX else f"{self._value(low)} to {self._value(last)}"

    def _value(self, key: int) -> Any:
        if self.double:
            bits = key if key >= 0 else key ^ KEY_MAX
            return struct.unpack("<d", struct.pack("<q", bits))[0]
        return key


def _double_key(value: float) -> int:
    if value != value:
        return NAN_KEY
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ KEY_MAX


class StringDomain(Domain):
    """Labels of the strings that predicates name.

    As long as predicates only ask whether a value is one of theirs (=, IN, <> and NOT IN), all other strings
    have one key, below all labels; from the first range on each has that of its gap.
    Cost of a new string: O(log strings).
    """

    def __init__(self, type_: Type, capacities: Capacities = USUAL) -> None:
        super().__init__(type_)
        self._capacities = capacities
        self._moved: tuple[Int64Array, Int64Array] | None = None
        self._strings: SortedList = SortedList()
        self._labels: dict[str, int] = {}
        self._named = NamedStrings(capacities=capacities)
        self._ordered = False
        self._newest: str | None = None
        self._kept = capacities.first(KEPT_MIN)

    def __len__(self) -> int:
        return len(self._labels)

    def name(self, region: Region) -> None:
        bounds = [bound for interval in region.intervals for bound in interval if isinstance(bound, str)]
        for bound in bounds:
            if bound.removesuffix("\0") not in self._labels:
                self._insert(bound.removesuffix("\0"))
        self._ordered |= not _of_points(bounds)

    def _key(self, value: Key) -> int:
        """The key of the first string at or above a bound; a last zero character means "just above"."""
        string = value.removesuffix("\0")
        return self._labels[string] + len(value) - len(string)

    def _insert(self, string: str) -> None:
        label: int | None
        strings, labels = self._strings, self._labels
        place = strings.bisect_left(string)
        below = strings[place - 1] if place else None
        above = strings[place] if place < len(strings) else None
        if below is None:
            label = 0 if above is None else labels[above] - STEP
        elif above is None:
            label = labels[below] + STEP
        else:
            label = self._between(below, above)
        strings.add(string)
        if label is None or not -(2**62) < label < 2**62:
            self._deal()
        else:
            labels[string] = label
            self._named.add(string, label)
        self._newest = string

    def _between(self, below: str, above: str) -> int | None:
        """An even label with room on both sides; near the newest string, since constants often ascend."""
        low, high = self._labels[below], self._labels[above]
        if high - low < 4:
            return None
        middle = (low + high) >> 1 & ~1
        if below == self._newest:
            return min(low + NEAR, middle)
        return max(high - NEAR, middle) if above == self._newest else middle

    def _deal(self) -> None:
        """All labels anew, evenly; what they were is kept for :meth:`moved`."""
        step = min(STEP, 2**62 // (len(self._strings) + 1)) & ~1
        first = -step * (len(self._strings) >> 1)
        old = self._labels
        self._labels = {string: first + i * step for i, string in enumerate(self._strings)}
        self._named = NamedStrings(self._labels, self._capacities)
        before = sorted(old, key=old.__getitem__)
        new = np.fromiter((self._labels[s] for s in before), np.int64, len(before))
        if self._moved is not None:  # twice since anybody asked
            self._moved = (self._moved[0], new[np.searchsorted(_labels(old, before), self._moved[1])])
            return
        self._moved = (_labels(old, before), new)

    def moved(self) -> tuple[Int64Array, Int64Array] | None:
        """Labels before and now, if they were dealt anew since the last call."""
        moved, self._moved = self._moved, None
        return moved

    def forget_but(self, used: Iterable[int]) -> None:
        """Only strings with one of these labels (or the odd ones above) are named still."""
        held = {label & ~1 for label in used}
        self._labels = {string: label for string, label in self._labels.items() if label in held}
        self._strings = SortedList(self._labels)
        self._named = NamedStrings(self._labels, self._capacities)
        self._kept = max(self._capacities.first(KEPT_MIN), len(self._labels))

    @property
    def wants_sweep(self) -> bool:  # type: ignore[override]
        """Whether many strings came since the last sweep, so that those without a use should go."""
        return len(self._labels) > 2 * self._kept

    def keys(self, column: Column, out: Int64Array) -> None:
        """Write keys as every domain does. O(rows + bytes of new strings), times log strings where ranges are
        named.
        """
        self._named.keys_of(column, out, ordered=self._ordered)

    def _value(self, key: int) -> Any:
        for string, label in self._labels.items():
            if label == key & ~1:
                return repr(string)
        return "?"

    def _check(self) -> None:
        assert list(self._strings) == sorted(self._labels)
        labels = [self._labels[string] for string in self._strings]
        assert all(label % 2 == 0 for label in labels)
        assert all(low < high for low, high in pairwise(labels))
        self._named._check(self._labels)


def _of_points(bounds: list[str]) -> bool:
    """Whether ascending bounds of intervals come in pairs, a string and the one just above it: then all
    strings that none of them names are on one side.
    """
    return len(bounds) % 2 == 0 and all(
        above == string + "\0" for string, above in zip(bounds[::2], bounds[1::2], strict=True)
    )


def _labels(labels: dict[str, int], strings: list[str]) -> Int64Array:
    return np.fromiter((labels[string] for string in strings), np.int64, len(strings))


def moved_bounds(bounds: Int64Array, before: Int64Array, now: Int64Array) -> Int64Array:
    """Keys that are labels or one above (or the ends of the domain) after labels were dealt anew."""
    place = np.clip(np.searchsorted(before, bounds, "right") - 1, 0, len(before) - 1)
    inner = (bounds != KEY_MIN) & (bounds != KEY_MAX)
    return np.where(inner, now[place] + (bounds - before[place]), bounds)


def domain_of(type_: Type, capacities: Capacities = USUAL) -> Domain:
    """The domain of a column's type."""
    return StringDomain(type_, capacities) if type_.kind is Kind.STRING else Domain(type_)
