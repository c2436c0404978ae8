"""The shape of a plan: its operators with what was measured of them, as a function of what they are given.

A shape has numbered *slots*; the share that the entity in a slot is given is row ``slot`` of x,
float64[slots, points]. Queries with equal shapes over the same entities have equal precision. Nodes are
immutable and compare by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from engine.overload.precision import composition, resources
from engine.overload.precision.precision import EXACT, FloatArray, Precision
from engine.overload.precision.resources import Table

INTERVAL = 1.959963984540054
"""Half the width of the 95 % interval of a normal variable, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What leaves an operator. sampled: the share of its rows that samples keep, which is known and has no
    bias, and is part of ``precision.fn`` too. error: of aggregates, half the width of the 95 % interval
    relative to the value; None of rows.
    """

    precision: Precision
    sampled: FloatArray
    error: FloatArray | None = None


class Own(Protocol):
    """The own precision of an operator, by what it is given."""

    def at(self, x: FloatArray) -> Precision:
        """Its precision on exact inputs."""
        ...


class Node(Protocol):
    """An operator with those below it."""

    def at(self, x: FloatArray) -> Flow:
        """What leaves it."""
        ...


# --- own precision --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exactly:
    """It loses nothing."""

    def at(self, x: FloatArray) -> Precision:
        return EXACT


@dataclass(frozen=True, slots=True)
class Fixed:
    """Figures that nothing changes."""

    fp: float = 0.0
    fn: float = 0.0

    def at(self, x: FloatArray) -> Precision:
        return Precision.of(self.fp, self.fn)


@dataclass(frozen=True, slots=True)
class WindowCut:
    """Windows shorter than asked for. left, right: matches whose older row is on that side, by the share of
    the window that is kept; None: the side has no window that may be cut. A slot None keeps it whole.
    """

    left: Table
    left_slot: int | None
    right: Table | None = None
    right_slot: int | None = None

    def at(self, x: FloatArray) -> Precision:
        whole, kept = 0.0, np.zeros(x.shape[1])
        for table, slot in ((self.left, self.left_slot), (self.right, self.right_slot)):
            if table is None:
                continue
            full = float(table.at(np.ones(1))[0])
            whole += full
            kept = kept + (full if slot is None else table.at(x[slot]))
        return resources.window_kept(kept, whole)


@dataclass(frozen=True, slots=True)
class SampledSynopses:
    """A join keeps samples of its synopses. left_share: of the matches, those whose older row is left."""

    left_share: float
    left_slot: int | None
    right_slot: int | None

    def at(self, x: FloatArray) -> Precision:
        ones = np.ones(x.shape[1])
        left = ones if self.left_slot is None else x[self.left_slot]
        right = ones if self.right_slot is None else x[self.right_slot]
        return resources.sampled_synopses(self.left_share, left, right)


@dataclass(frozen=True, slots=True)
class BloomDistinct:
    """DISTINCT over a Bloom filter. bits: its size at share 1; values: what it holds."""

    slot: int
    bits: float
    hashes: int
    values: float

    def at(self, x: FloatArray) -> Precision:
        return resources.bloom_distinct(x[self.slot] * self.bits, self.hashes, self.values)


@dataclass(frozen=True, slots=True)
class BloomIntersect:
    """INTERSECT over a Bloom filter of the right side. overlap: share of left rows that are in it."""

    slot: int
    bits: float
    hashes: int
    values: float
    overlap: float

    def at(self, x: FloatArray) -> Precision:
        bits = x[self.slot] * self.bits
        return resources.bloom_intersect(bits, self.hashes, self.values, self.overlap)


@dataclass(frozen=True, slots=True)
class Remembered:
    """DISTINCT that remembers a share of its window. older: repeats that are older, by that share; due:
    distinct rows in the same unit.
    """

    slot: int
    older: Table
    due: float

    def at(self, x: FloatArray) -> Precision:
        return resources.remembered(self.older.at(x[self.slot]), self.due)


@dataclass(frozen=True, slots=True)
class Tabulated:
    """Any other, as it was measured by the share given."""

    slot: int
    fp: Table
    fn: Table

    def at(self, x: FloatArray) -> Precision:
        return Precision(self.fp.at(x[self.slot]), self.fn.at(x[self.slot]))


EXACTLY = Exactly()


# --- operators ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Input:
    """A base input. late: share of the rows due that came too late. own: the loss of its window, where that
    is no matter of a join.
    """

    late: float = 0.0
    own: Own = EXACTLY

    def at(self, x: FloatArray) -> Flow:
        return _rows(Precision.of(0.0, self.late).with_own(self.own.at(x)), x)


@dataclass(frozen=True, slots=True)
class Sampled:
    """SAMPLE, or a queue that sheds rows by their hash. rate: of a sample that stands in the text."""

    below: Node
    slot: int | None
    rate: float = 1.0

    def at(self, x: FloatArray) -> Flow:
        flow = self.below.at(x)
        rate = np.full(x.shape[1], self.rate) if self.slot is None else x[self.slot] * self.rate
        own = resources.sampled(rate)
        return Flow(flow.precision.with_own(own), flow.sampled * rate)


@dataclass(frozen=True, slots=True)
class Shed:
    """A queue that sheds runs of rows: what is left has a bias."""

    below: Node
    slot: int

    def at(self, x: FloatArray) -> Flow:
        flow = self.below.at(x)
        return Flow(flow.precision.with_own(resources.sampled(x[self.slot])), flow.sampled)


@dataclass(frozen=True, slots=True)
class Selected:
    """Selection, projection. wrong_passes: pass rate of wrong over right rows."""

    below: Node
    wrong_passes: float = 1.0

    def at(self, x: FloatArray) -> Flow:
        flow = self.below.at(x)
        found = composition.selected(flow.precision, wrong_passes=self.wrong_passes)
        return Flow(found, flow.sampled, flow.error)


@dataclass(frozen=True, slots=True)
class Joined:
    """Join, semi-join, INTERSECT."""

    left: Node
    right: Node
    own: Own = EXACTLY
    wrong_joins: float = 1.0

    def at(self, x: FloatArray) -> Flow:
        left, right = self.left.at(x), self.right.at(x)
        both = composition.joined(
            left.precision, right.precision, self.own.at(x), wrong_joins=self.wrong_joins
        )
        return Flow(both, left.sampled * right.sampled)


@dataclass(frozen=True, slots=True)
class United:
    """UNION ALL. rates: rows due of each input."""

    inputs: tuple[Node, ...]
    rates: tuple[float, ...]

    def at(self, x: FloatArray) -> Flow:
        flows = [each.at(x) for each in self.inputs]
        kept = np.minimum.reduce([flow.sampled for flow in flows])
        even = all(np.array_equal(kept, flow.sampled) for flow in flows)
        found = composition.united([flow.precision for flow in flows], self.rates)
        return Flow(found, kept if even else np.ones(x.shape[1]))


@dataclass(frozen=True, slots=True)
class Excepted:
    """EXCEPT, NOT EXISTS, NOT IN.

    overlap: d, wrong_removed: h; rows_right, rows_difference, spread: of :func:`composition.wrongly_removed`.
    bloom: a Bloom filter of the right side, whose wrong finds remove rows.
    """

    left: Node
    right: Node
    overlap: float
    wrong_removed: float = 0.0
    rows_right: float = 0.0
    rows_difference: float = 0.0
    spread: float = 0.0
    bloom: BloomDistinct | None = None

    def at(self, x: FloatArray) -> Flow:
        left, right = self.left.at(x), self.right.at(x)
        removed = composition.wrongly_removed(
            right.precision, self.rows_right, self.rows_difference, self.spread
        )
        if self.bloom is not None:
            removed = 1.0 - (1.0 - removed) * self.bloom.at(x).found
        found = composition.excepted(
            left.precision,
            right.precision,
            overlap=self.overlap,
            removed=removed,
            wrong_removed=self.wrong_removed,
        )
        return _rows(found, x)


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """DISTINCT. copies: (j, share of the values that have j copies); wrong_copies: mean of a wrong value."""

    below: Node
    copies: tuple[tuple[int, float], ...] = ((1, 1.0),)
    wrong_copies: float | None = None
    own: Own = EXACTLY

    def at(self, x: FloatArray) -> Flow:
        below = self.below.at(x).precision
        found = composition.distinct(
            below, self.own.at(x), copies=self.copies, wrong_copies=self.wrong_copies
        )
        return _rows(found, x)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """GROUP BY, or one group. spread: the largest sum v^2 / (sum v)^2 of its calls, 1 / rows of COUNT.

    Rows that samples keep give an unbiased value with a variance; others that are missing or wrong shift it.
    The error is the sum of the shift and of half the interval. scaled: COUNT and SUM are divided by the share
    that samples keep; where they are not, what a sample drops is a shift too. groups: (rows, share of the
    groups that have so many), of which a group is missed when all its rows are.
    """

    below: Node
    spread: float
    groups: tuple[tuple[int, float], ...] = ()
    scaled: bool = True

    def at(self, x: FloatArray) -> Flow:
        flow = self.below.at(x)
        precision = flow.precision
        kept = (
            np.broadcast_to(flow.sampled, precision.fn.shape) if self.scaled else np.ones_like(precision.fn)
        )
        given = precision.found + precision.wrong_by_due
        shift = np.abs(np.where(kept > 0.0, given / np.maximum(kept, 1e-300), 0.0) - 1.0)
        deviation = np.sqrt(resources.sum_variance(flow.sampled, self.spread))
        missing = sum((share * precision.fn**count for count, share in self.groups), np.zeros(x.shape[1]))
        return Flow(
            Precision(np.zeros(x.shape[1]), np.broadcast_to(missing, (x.shape[1],))),
            np.ones(x.shape[1]),
            shift + INTERVAL * deviation,
        )


def _rows(precision: Precision, x: FloatArray) -> Flow:
    return Flow(precision, np.ones(x.shape[1]))


class PlanShape:
    """A plan by its root; hashed once. slots: how many shares it depends on.

    Raises ValueError: a slot that is not among them.
    """

    __slots__ = ("_hash", "root", "slots")

    def __init__(self, root: Node, slots: int) -> None:
        self.root = root
        self.slots = slots
        self._hash = hash((root, slots))
        if any(not 0 <= slot < slots for slot in slots_of(root)):
            raise ValueError(f"a plan of {slots} slots names another one")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, PlanShape)
            and self._hash == other._hash
            and self.slots == other.slots
            and self.root == other.root
        )

    def __repr__(self) -> str:
        return f"PlanShape({self.root!r}, {self.slots})"

    def at(self, x: FloatArray) -> Flow:
        """What the plan gives. x: float64[slots, points]. Arrays of the result are float64[points]."""
        flow = self.root.at(x)
        points = (x.shape[1],)
        found = flow.precision
        return Flow(
            Precision(np.broadcast_to(found.fp, points), np.broadcast_to(found.fn, points)),
            np.broadcast_to(flow.sampled, points),
            None if flow.error is None else np.broadcast_to(flow.error, points),
        )


def slots_of(node: object) -> Iterator[int]:
    """The slots that a node and all below it name."""
    for each in fields(node):  # type: ignore[arg-type]
        value = getattr(node, each.name)
        if each.name == "slot" or each.name.endswith("_slot"):
            if value is not None:
                yield value
        elif each.name == "inputs":
            for inner in value:
                yield from slots_of(inner)
        elif hasattr(value, "at") and not isinstance(value, Table):
            yield from slots_of(value)
