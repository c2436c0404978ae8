"""What precision a query may expect when it reads less than its text asks for.

The shape of a bound query (:mod:`.shape`) has up to two slots for each of its scans, in the order of
``Query.scans()``: the share of its window that is kept, and the share of its rows that a sample keeps. What
was not measured is estimated as EXPLAIN does: rows of each step come in, and of DISTINCT and EXCEPT the
shares that these make likely.

Two precisions are told: of the answer, the rows that are there, and of its changes, the rows that come. A
shorter window lets rows leave sooner, so that the answer misses them; as many come, but find fewer partners
(STREAM, section 5.3). An answer so loses at least as much as its changes do.

What is taken for granted: rows come evenly over time, and their values do not depend on it; the windows are
full. Values are drawn at random, so that the rows of one are Poisson distributed about their mean; those that
are added scatter as widely as they are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.dataflow.cost.flows import JoinedInput
from engine.language.query import Query, Scan
from engine.model.expressions import And, columns_of
from engine.model.source import MADE, SourceName
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import Outcome
from engine.overload.precision.resources import MeasuredCurve
from engine.overload.precision.shape import (
    BaseInput,
    Excepted,
    LossNode,
    PlanShape,
    Reads,
    Sampled,
    Selected,
    WindowCut,
)
from engine.windows.clauses import RowWindow, Window

RowsOf = Callable[[Query], Sequence[float]]
"""Rows of the scan of a query, then those that leave each stage, as estimated."""


@dataclass(frozen=True, slots=True)
class Copies:
    """What a stage compares or groups. left, right: rows of a value on either side, in the mean over those
    that there are. shared: the share of left rows whose value the right side has too. values: how many the
    left side has. inputs: of joins below an aggregate, in the order of the text; empty where none are or
    they are not known.
    """

    left: float = 1.0
    right: float = 1.0
    shared: float = 1.0
    values: float | None = None
    inputs: tuple[JoinedInput, ...] = ()


CopiesOf = Callable[[Query, int], Copies | None]
"""Gives the copies that the stage at a place of a query compares or groups; None: they are not known."""


def not_known(query: Query, place: int) -> None:
    """Knows the copies of no stage (a :data:`CopiesOf`)."""


SCALED = frozenset({"COUNT", "SUM", "AVG"})
"""Aggregates of which a sample gives an unbiased value; others are what they are over the rows kept."""

NONE_LATE: Mapping[SourceName, float] = {}

COPIES_MAX = 24
"""Copies of a value are counted where there are no more in the mean; of more nearly never all are missing."""


@dataclass(frozen=True, slots=True)
class Knob:
    """What may be given less. scan: its place in ``Query.scans()``."""

    scan: int
    kind: Literal["window", "rate"]


Turned = Callable[[Knob], MeasuredCurve | None]
"""What is kept of what the query asks for, by the share that a knob is given; None: it cannot be turned."""

WHOLE = MeasuredCurve.linear(1.0)


@dataclass(frozen=True, slots=True)
class QueryShape:
    """What a query gives by the shares that its scans are given. steps: what leaves the scan, then what
    leaves each stage. knobs: what each slot is; a rate that is no slot counts as whole.
    """

    steps: tuple[LossNode, ...]
    knobs: tuple[Knob, ...]
    reads: Reads = "answer"

    @property
    def slots(self) -> int:
        return len(self.knobs)

    @property
    def plan(self) -> PlanShape:
        """The shape of the plan that gives the answer."""
        return PlanShape(self.steps[-1], self.slots, self.reads)

    def expected(self, x: FloatArray) -> tuple[Outcome, ...]:
        """Returns what each step is expected to give at the shares x, float64[slots]."""
        shapes = (PlanShape(node, self.slots, self.reads) for node in self.steps)
        return tuple(Outcome.at(shape.at(x[:, None])) for shape in shapes)


def shape_of_query(
    query: Query,
    rows_of: RowsOf,
    late: Mapping[SourceName, float] = NONE_LATE,
    turned: Turned = lambda knob: WHOLE,
    *,
    scaled: bool = True,
    copies_of: CopiesOf = not_known,
) -> QueryShape:
    """The shape of what a query asks for. Cost: O(stages), and what rows_of costs. late: of each source the
    share of its rows that come too late; none of those that it does not name. turned: which slots there are.
    scaled: COUNT and SUM are divided by the share of rows that samples keep.
    """
    builder = _Builder(rows_of, late, turned, scaled, copies_of)
    steps = builder.steps(query)
    return QueryShape(steps, tuple(builder.knobs), reads_of(query))


def reads_of(query: Query) -> Reads:
    """What is read of a query: of one that emits the rows that come, or that leave, these alone. All others
    are fetched, or followed by whoever adds their changes up.
    """
    return "changes" if query.emit is not None and query.operator in ("istream", "dstream") else "answer"


def shares_of(asked: Query, given: Query) -> FloatArray | None:
    """The shares at which ``given``, a query of the same form, answers ``asked``, float64[slots]; None where
    one is not known, as of a window where none was.
    """
    found: list[float] = []
    for one, other in zip(asked.scans(), given.scans(), strict=True):
        window = window_share(one, other)
        if window is None:
            return None
        found += [window, rate_of(other)]
    return np.array(found)


def shares_given(asked: Query, given: Query) -> FloatArray | None:
    """As :func:`shares_of`, where what the text samples is what it asks for."""
    shares = shares_of(asked, given)
    if shares is not None:
        shares[1::2] /= [rate_of(scan) for scan in asked.scans()]
    return shares


def is_exact(query: Query) -> bool:
    """Whether the text itself leaves no row out."""
    return all(rate_of(scan) >= 1.0 for scan in query.scans())


def is_told(call: AggregateCall) -> bool:
    """Whether some rows tell about how much it is over all of them."""
    return call.function in SCALED and not call.distinct


def rate_of(scan: Scan) -> float:
    """The share of rows that SAMPLE keeps, in (0, 1]."""
    sample = scan.sample
    return 1.0 if sample is None else float(sample.share)


def window_share(asked: Scan, given: Scan) -> float | None:
    """How much of the window is kept; None: nothing tells."""
    if asked.window == given.window:
        return 1.0
    if isinstance(asked.window, RowWindow) and isinstance(given.window, RowWindow):
        return min(1.0, given.window.rows / asked.window.rows)
    if isinstance(asked.window, RowWindow) or isinstance(given.window, RowWindow):
        return None
    whole, kept = length_ms(asked.window), length_ms(given.window)
    return None if not whole or kept is None else min(1.0, kept / whole)


def length_ms(window: Window) -> int | None:
    """From the first instant to the last; None of windows that are not bounded by time behind NOW."""
    if isinstance(window, RowWindow) or window.begin is None or not window.begin.relative:
        return None
    end_ms = min(0, window.end.ms) if window.end.relative else 0
    return max(0, end_ms - window.begin.ms)


@dataclass(frozen=True, slots=True)
class StageInputs:
    """What a stage gets of its inputs, and what leaves it."""

    query: Query
    place: int
    """Where it stands in the query."""
    steps: Sequence[LossNode]
    """What leaves the scan and each stage below."""
    rows: float
    """From below."""
    given: float
    """Rows that leave the stage."""
    copies_of: CopiesOf
    scaled: bool
    """As of :func:`shape_of_query`."""
    second: tuple[LossNode, float] | None = None
    """What its second input gives, and how many rows; None: it has one."""

    @property
    def below(self) -> LossNode:
        """What it gets from below."""
        return self.steps[-1]

    @property
    def right(self) -> LossNode:
        """What its second input gives."""
        assert self.second is not None
        return self.second[0]

    @property
    def copies(self) -> Copies | None:
        """What it compares or groups; None: that is not known."""
        return self.copies_of(self.query, self.place)

    @property
    def left_copies(self) -> ValueCopies:
        """How many copies the values of rows have that are grouped or made distinct."""
        known, values = self.copies, self.given
        return copies_at_random(
            known.left if known is not None else self.rows / values if values > 0.0 else 1.0
        )

    @property
    def right_copies(self) -> ValueCopies:
        """How many copies the values on the right have that rows are compared with."""
        known = self.copies
        return copies_at_random(1.0 if known is None else known.right)

    @property
    def rows_of_group(self) -> float:
        """In the mean. Pairs are not independent of each other: they count as the rows they are made of, as
        EXPLAIN estimates a join.
        """
        known = self.copies
        return self.rows / max(1.0, self.given if known is None or known.values is None else known.values)

    def negated(self) -> Excepted:
        """What is left of the rows below without those that the second input has."""
        overlap = min(1.0, max(0.0, 1.0 - self.given / self.rows)) if self.rows > 0.0 else 0.0
        return Excepted(self.below, self.right, overlap)


@asked_of("flow")
def loss(stage: Stage, inputs: StageInputs) -> LossNode:
    """What a stage gives of what its inputs lose."""
    return Selected(inputs.below)


class _Builder:
    def __init__(
        self,
        rows_of: RowsOf,
        late: Mapping[SourceName, float],
        turned: Turned,
        scaled: bool,
        copies_of: CopiesOf = not_known,
    ) -> None:
        self._rows_of = rows_of
        self._late = late
        self._turned = turned
        self._scaled = scaled
        self._copies_of = copies_of
        self._scans = 0
        self.knobs: list[Knob] = []
        self.operators: list[tuple[Scan | Stage, LossNode]] = []
        """What each scan and stage gives, of the query and of those within it, in the order of the text."""

    def _slot(self, knob: Knob) -> tuple[int | None, MeasuredCurve]:
        """Returns the slot of a knob, and what is kept by the share it is given; (None, WHOLE) for one that
        cannot be turned.
        """
        kept = self._turned(knob)
        if kept is None:
            return None, WHOLE
        self.knobs.append(knob)
        return len(self.knobs) - 1, kept

    def steps(self, query: Query) -> tuple[LossNode, ...]:
        """What leaves the scan, then what leaves each stage."""
        return self._steps(query)[0]

    def _steps(self, query: Query) -> tuple[tuple[LossNode, ...], float]:
        """As :meth:`steps`, and how many rows leave the last one."""
        rows = list(self._rows_of(query))
        number = self._scans
        self._scans += 1
        slot, kept = self._slot(Knob(number, "window"))
        rate_slot, _ = self._slot(Knob(number, "rate"))
        span_ms = length_ms(query.scan.window)
        late = self._late.get(query.source, 0.0)
        scan = BaseInput(late, WindowCut(kept, slot), 1.0 / span_ms if span_ms else 0.0)
        found: list[LossNode] = [Sampled(scan, rate_slot)]
        self.operators.append((query.scan, found[0]))
        for place, stage in enumerate(query.stages):
            second = None
            if stage.right_input is not None:
                right, right_rows = self._steps(stage.right_input)
                second = right[-1], right_rows
            given, copies_of, scaled = rows[place + 1], self._copies_of, self._scaled
            inputs = StageInputs(query, place, tuple(found), rows[place], given, copies_of, scaled, second)
            found.append(loss(stage, inputs))
            self.operators.append((stage, found[-1]))
        return tuple(found), rows[-1]


def gives_all_rows(query: Query, place: int) -> bool:
    """Whether the stages below a place give each row of the scan's window but for those that were shed, or
    that no sample keeps.
    """
    predicate = query.scan.predicate
    parts = predicate.operands if isinstance(predicate, And) else (predicate,)
    made = {column.name for column in MADE}
    is_all = all(part is None or made.issuperset(one.name for one in columns_of(part)) for part in parts)
    return is_all and all(stage.outputs_of_rows is not None for stage in query.stages[:place])


ValueCopies = tuple[tuple[int, float], ...]
"""(copies, the share of the values that there are with so many)."""


def copies_at_random(mean: float) -> ValueCopies:
    """Where rows draw their values at random, so that the rows of a value are Poisson distributed, but for
    values without any. mean: rows of a value, over those that there are.
    """
    if mean > COPIES_MAX:
        return ((int(mean), 1.0),)
    if mean < 1.0 + 1e-3:
        return ((1, 1.0),)
    rate = rate_at_random(mean)
    point, found = math.exp(-rate), []
    for count in range(1, 4 * COPIES_MAX):
        point *= rate / count
        found.append((count, point))
        if count > rate and point < 1e-4:
            break
    whole = sum(share for _, share in found)
    return tuple((count, share / whole) for count, share in found if share > 1e-4)


def rate_at_random(mean: float) -> float:
    """Rows of a value over all values, those without rows too. mean: as of :func:`copies_at_random`."""
    if mean > COPIES_MAX:
        return mean
    low, high = 0.0, max(1.0 + 1e-3, mean)
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if middle / -math.expm1(-middle) < mean else (low, middle)
    return high


def approximate_steps(
    query: Query,
    rows_of: RowsOf,
    late: Mapping[SourceName, float] = NONE_LATE,
    asked: Query | None = None,
    copies_of: CopiesOf = not_known,
) -> tuple[Outcome, ...] | None:
    """What each step of a query may expect: the scan, then each stage; None where all is exact, or nothing is
    known. late: as of :func:`shape_of_query`. asked: what was registered, where the query is that with less;
    steps are then those of ``asked``.
    """
    timely = not any(late.get(name, 0.0) > 0.0 for name in query.sources)
    if is_exact(query) and timely and (asked is None or asked == query):
        return None
    shares = shares_of(query, query) if asked is None else shares_given(asked, query)
    if shares is None:
        return None
    # What the text itself samples is meant so: its COUNT is that of the sample.
    of = query if asked is None else asked
    shape = shape_of_query(of, rows_of, late, scaled=asked is not None, copies_of=copies_of)
    return shape.expected(shares)


def approximate_operators(
    query: Query,
    rows_of: RowsOf,
    late: Mapping[SourceName, float] = NONE_LATE,
    asked: Query | None = None,
    copies_of: CopiesOf = not_known,
) -> Sequence[tuple[Scan | Stage, Outcome]]:
    """Returns what each scan and each stage may expect (:func:`approximate_steps`), of a query and of those
    within it, in the order of the text. It is empty where all is exact, or nothing is known.
    """
    timely = not any(late.get(name, 0.0) > 0.0 for name in query.sources)
    if is_exact(query) and timely and (asked is None or asked == query):
        return ()
    shares = shares_of(query, query) if asked is None else shares_given(asked, query)
    if shares is None:
        return ()
    builder = _Builder(rows_of, late, lambda knob: WHOLE, asked is not None, copies_of)
    builder.steps(query if asked is None else asked)
    given = builder.operators
    if asked is not None:
        plain = _Builder(rows_of, late, lambda knob: WHOLE, False)
        plain.steps(query)
        if len(plain.operators) != len(given):  # it scales what it counts
            return ()
        given = [(of, node) for (of, _), (_, node) in zip(plain.operators, given, strict=True)]
    shape = QueryShape(tuple(node for _, node in given), tuple(builder.knobs))
    return tuple(zip((of for of, _ in given), shape.expected(shares), strict=True))
