"""The shape of a plan: its operators with what was measured of them, as a function of what they are given.

A shape has numbered *slots*; the share that the entity in a slot is given is row ``slot`` of x,
float64[slots, points]. Queries with equal shapes over the same entities have equal precision. Nodes are
immutable and compare by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Literal, Protocol

import numpy as np

from engine.overload.precision import composition, resources
from engine.overload.precision.precision import EXACT, FloatArray, Precision
from engine.overload.precision.resources import MeasuredCurve

Reads = Literal["answer", "changes"]
"""What a client reads of a query: its answer, by fetching it or by adding its changes up; or the rows alone
that come to it or leave it."""


@dataclass(frozen=True, slots=True)
class PrecisionFlow:
    """What leaves an operator."""

    # The precision of the answer, which is the rows that are there at a time.
    precision: Precision
    # float64[points]: the share of its rows that samples keep, which is known and has no bias, and is part of
    # ``precision.fn`` too.
    sampled: FloatArray
    # float64[points]: of aggregates, half the width of the 95 % interval relative to the value; None of rows.
    error: FloatArray | None = None
    # float64[points]: the share of the rows due to come that do come; None: as of those that are there.
    came: FloatArray | None = None
    # How large a share of the rows that are there comes anew in a ms; 0: nothing tells, or none does.
    turnover: float = 0.0
    reads: Reads = "answer"
    # Whether the error is known. Where it is not, as of MAX, it is by how much a sum would be off.
    told: bool = True

    @property
    def arriving(self) -> FloatArray:
        """The share of the rows due to come that do come."""
        return self.precision.found if self.came is None else self.came

    @property
    def missing(self) -> FloatArray:
        """The share of the rows due that are missing to who reads them."""
        return self.precision.fn if self.reads == "answer" else 1.0 - self.arriving


class OwnLoss(Protocol):
    """The own precision of an operator, by what it is given."""

    def at(self, x: FloatArray) -> Precision:
        """Its precision on exact inputs."""
        ...


class LossNode(Protocol):
    """An operator with those below it."""

    def at(self, x: FloatArray) -> PrecisionFlow:
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

    left: MeasuredCurve
    left_slot: int | None
    right: MeasuredCurve | None = None
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
class BloomDistinct:
    """DISTINCT over a Bloom filter. bits: its size at share 1; values: what it holds."""

    slot: int
    bits: float
    hashes: int
    values: float

    def at(self, x: FloatArray) -> Precision:
        return resources.bloom_distinct(x[self.slot] * self.bits, self.hashes, self.values)


@dataclass(frozen=True, slots=True)
class Remembered:
    """DISTINCT that remembers a share of its window. older: repeats that are older, by that share; due:
    distinct rows in the same unit.
    """

    slot: int
    older: MeasuredCurve
    due: float

    def at(self, x: FloatArray) -> Precision:
        return resources.remembered(self.older.at(x[self.slot]), self.due)


EXACTLY = Exactly()


# --- operators ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BaseInput:
    """A base input. late: share of the rows due that came too late. own: the loss of its window: rows leave
    sooner, and as many come. turnover: of :class:`PrecisionFlow`, 1 / length of a window in ms.
    """

    late: float = 0.0
    own: OwnLoss = EXACTLY
    turnover: float = 0.0

    def at(self, x: FloatArray) -> PrecisionFlow:
        timely = Precision.of(0.0, self.late)
        came = np.broadcast_to(timely.found, (x.shape[1],))
        found = timely.with_own(self.own.at(x))
        return PrecisionFlow(found, np.ones(x.shape[1]), came=came, turnover=self.turnover)


@dataclass(frozen=True, slots=True)
class Sampled:
    """SAMPLE, or a queue that sheds rows by their hash. rate: of a sample that stands in the text."""

    below: LossNode
    slot: int | None
    rate: float = 1.0

    def at(self, x: FloatArray) -> PrecisionFlow:
        flow = self.below.at(x)
        rate = np.full(x.shape[1], self.rate) if self.slot is None else x[self.slot] * self.rate
        own = resources.sampled(rate)
        return replace(
            flow,
            precision=flow.precision.with_own(own),
            sampled=flow.sampled * rate,
            came=flow.arriving * rate,
        )


@dataclass(frozen=True, slots=True)
class Selected:
    """Selection, projection. wrong_passes: pass rate of wrong over right rows."""

    below: LossNode
    wrong_passes: float = 1.0

    def at(self, x: FloatArray) -> PrecisionFlow:
        flow = self.below.at(x)
        found = composition.selected(flow.precision, wrong_passes=self.wrong_passes)
        return replace(flow, precision=found)


@dataclass(frozen=True, slots=True)
class JoinLoss:
    """Join, INTERSECT.

    A pair is there as long as both of its rows are: windows cut to w' of w leave w1' w2' / (w1 w2) of the
    pairs. A pair comes when its second row does and finds the first one: of the new pairs w1' + w2' of
    w1 + w2 are left (STREAM, section 5.3), which is less of a loss.
    """

    left: LossNode
    right: LossNode
    own: OwnLoss = EXACTLY
    wrong_joins: float = 1.0

    def at(self, x: FloatArray) -> PrecisionFlow:
        left, right = self.left.at(x), self.right.at(x)
        both = composition.joined(
            left.precision, right.precision, self.own.at(x), wrong_joins=self.wrong_joins
        )
        turnover = left.turnover + right.turnover
        new_left = left.turnover / turnover if turnover else 0.5
        came = new_left * left.arriving * right.precision.found
        came = came + (1.0 - new_left) * left.precision.found * right.arriving
        own = self.own.at(x).found
        return PrecisionFlow(both, left.sampled * right.sampled, came=came * own, turnover=turnover)


@dataclass(frozen=True, slots=True)
class SemiJoinLoss:
    """IN, EXISTS: rows that have a partner at least. copies: of a value on the right, as of
    :class:`Deduplicated`: a row is missed when all its partners are. Its changes are taken to lose as much.
    """

    left: LossNode
    right: LossNode
    copies: tuple[tuple[int, float], ...] = ((1, 1.0),)

    def at(self, x: FloatArray) -> PrecisionFlow:
        left = self.left.at(x)
        values = composition.distinct(self.right.at(x).precision, copies=self.copies)
        return replace(left, precision=composition.joined(left.precision, values), came=None)


@dataclass(frozen=True, slots=True)
class BagCompared:
    """INTERSECT ALL, EXCEPT ALL: of each value the less of two counts of rows, or what the left one is more.

    left_rows, right_rows: rows of a value that both sides have, in the mean; counts are taken to be those of
    values drawn at random. shared: the share of left rows whose value the right side has too.
    """

    kind: Literal["intersect", "except"]
    left: LossNode
    right: LossNode
    left_rows: float
    right_rows: float
    shared: float

    def at(self, x: FloatArray) -> PrecisionFlow:
        left, right = self.left.at(x).precision, self.right.at(x).precision
        mine, others = self.left_rows * np.ones(1), self.right_rows * np.ones(1)
        met, kept = (
            composition.less_of_counts(mine, others),
            composition.less_of_counts(mine * left.found, others * right.found),
        )
        if self.kind == "except":
            alone = self.left_rows * (1.0 - self.shared)
            met, kept = (
                alone + self.shared * (mine - met),
                alone * left.found + self.shared * (mine * left.found - kept),
            )
        found = np.where(met > 0.0, kept / np.maximum(met, 1e-300), left.found)
        return _rows(Precision(left.fp, 1.0 - np.clip(found, 0.0, 1.0)), x)


@dataclass(frozen=True, slots=True)
class United:
    """UNION ALL. rates: rows due of each input."""

    inputs: tuple[LossNode, ...]
    rates: tuple[float, ...]

    def at(self, x: FloatArray) -> PrecisionFlow:
        flows = [each.at(x) for each in self.inputs]
        kept = np.minimum.reduce([flow.sampled for flow in flows])
        even = all(np.array_equal(kept, flow.sampled) for flow in flows)
        found = composition.united([flow.precision for flow in flows], self.rates)
        new = [rate * flow.turnover for rate, flow in zip(self.rates, flows, strict=True)]
        if not any(new):
            new = list(self.rates)
        came = sum((rate * flow.arriving for rate, flow in zip(new, flows, strict=True)), np.zeros(1))
        whole, due = sum(new), sum(self.rates)
        return PrecisionFlow(
            found,
            kept if even else np.ones(x.shape[1]),
            came=came / whole if whole else None,
            turnover=whole / due if due else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Excepted:
    """EXCEPT, NOT EXISTS, NOT IN.

    overlap: d, wrong_removed: h; rows_right, rows_difference, spread: of :func:`composition.wrongly_removed`.
    bloom: a Bloom filter of the right side, whose wrong finds remove rows.
    """

    left: LossNode
    right: LossNode
    overlap: float
    wrong_removed: float = 0.0
    rows_right: float = 0.0
    rows_difference: float = 0.0
    spread: float = 0.0
    bloom: BloomDistinct | None = None

    def at(self, x: FloatArray) -> PrecisionFlow:
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

    below: LossNode
    copies: tuple[tuple[int, float], ...] = ((1, 1.0),)
    wrong_copies: float | None = None
    own: OwnLoss = EXACTLY

    def at(self, x: FloatArray) -> PrecisionFlow:
        below = self.below.at(x).precision
        found = composition.distinct(
            below, self.own.at(x), copies=self.copies, wrong_copies=self.wrong_copies
        )
        return _rows(found, x)


def _rows(precision: Precision, x: FloatArray) -> PrecisionFlow:
    return PrecisionFlow(precision, np.ones(x.shape[1]))


class PlanShape:
    """A plan by its root; hashed once. slots: how many shares it depends on. reads: what is read of it.

    Raises ValueError: a slot that is not among them.
    """

    __slots__ = ("_hash", "reads", "root", "slots")

    def __init__(self, root: LossNode, slots: int, reads: Reads = "answer") -> None:
        self.root = root
        self.slots = slots
        self.reads = reads
        self._hash = hash((root, slots, reads))
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
            and self.reads == other.reads
            and self.root == other.root
        )

    def __repr__(self) -> str:
        return f"PlanShape({self.root!r}, {self.slots}, {self.reads!r})"

    def at(self, x: FloatArray) -> PrecisionFlow:
        """What the plan gives. x: float64[slots, points]. Arrays of the result are float64[points]."""
        flow = self.root.at(x)
        points = (x.shape[1],)
        found = flow.precision
        return PrecisionFlow(
            Precision(np.broadcast_to(found.fp, points), np.broadcast_to(found.fn, points)),
            np.broadcast_to(flow.sampled, points),
            None if flow.error is None else np.broadcast_to(flow.error, points),
            np.broadcast_to(flow.arriving, points),
            flow.turnover,
            self.reads,
            flow.told,
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
        elif hasattr(value, "at") and not isinstance(value, MeasuredCurve):
            yield from slots_of(value)
