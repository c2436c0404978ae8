"""What precision a query may expect when it reads less than its text asks for.

The shape of a bound query (:mod:`.shape`) has up to two slots for each of its scans, in the order of
``Query.scans()``: the share of its window that is kept, and the share of its rows that a sample keeps. What
was not measured is estimated as EXPLAIN does: rows of each step come in, and of DISTINCT and EXCEPT the
shares that these make likely.

A shorter window on an input of a join misses matches, so it counts at the join, as new pairs come (STREAM,
section 5.3); on any other scan it misses rows of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.language.query import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Query,
    Scan,
    SemiJoin,
    SetOperation,
    Stage,
)
from engine.model.source import SourceName
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import Outcome
from engine.overload.precision.resources import Table
from engine.overload.precision.shape import (
    Aggregated,
    Deduplicated,
    Excepted,
    Input,
    Joined,
    Node,
    PlanShape,
    Sampled,
    Selected,
    United,
    WindowCut,
)
from engine.windows.clauses import RowWindow

RowsOf = Callable[[Query], Sequence[float]]
"""Rows of the scan of a query, then those that leave each stage, as estimated."""

SCALED = frozenset({"COUNT", "SUM", "AVG"})
"""Aggregates of which a sample gives an unbiased value; others are what they are over the rows kept."""

NONE_LATE: Mapping[SourceName, float] = {}

COPIES_MAX = 64
"""Copies of a value are counted up to this."""


@dataclass(frozen=True, slots=True)
class Knob:
    """What may be given less. scan: its place in ``Query.scans()``."""

    scan: int
    kind: Literal["window", "rate"]


Turned = Callable[[Knob], float | None]
"""The share at which a knob gives all that the query asks for; None: it cannot be turned."""


@dataclass(frozen=True, slots=True)
class QueryShape:
    """steps: of the scan, then of each stage, what leaves it. knobs: what each slot is. A rate that is
    no slot counts as whole.
    """

    steps: tuple[Node, ...]
    knobs: tuple[Knob, ...]

    @property
    def slots(self) -> int:
        return len(self.knobs)

    @property
    def plan(self) -> PlanShape:
        """Of the answer."""
        return PlanShape(self.steps[-1], self.slots)

    def expected(self, x: FloatArray) -> tuple[Outcome, ...]:
        """Of each step, at the shares x, float64[slots]."""
        found = []
        for node in self.steps:
            flow = PlanShape(node, self.slots).at(x[:, None])
            error = None if flow.error is None else float(flow.error[0])
            found.append(Outcome(float(flow.precision.fp[0]), float(flow.precision.fn[0]), error))
        return tuple(found)


def shape_of_query(
    query: Query,
    rows_of: RowsOf,
    late: Mapping[SourceName, float] = NONE_LATE,
    turned: Turned = lambda knob: 1.0,
    *,
    scaled: bool = True,
) -> QueryShape:
    """The shape of what a query asks for. Cost: O(stages), and what rows_of costs. late: of each source the
    share of its rows that come too late; none of those that it does not name. turned: which slots there are.
    scaled: COUNT and SUM are divided by the share of rows that samples keep.
    """
    builder = _Builder(rows_of, late, turned, scaled)
    steps = builder.steps(query)
    return QueryShape(steps, tuple(builder.knobs))


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
    whole, kept = asked.window.reach_ms, given.window.reach_ms
    return None if not whole or kept is None else min(1.0, kept / whole)


class _Builder:
    def __init__(
        self, rows_of: RowsOf, late: Mapping[SourceName, float], turned: Turned, scaled: bool
    ) -> None:
        self._rows_of = rows_of
        self._late = late
        self._turned = turned
        self._scaled = scaled
        self._scans = 0
        self.knobs: list[Knob] = []
        self.operators: list[tuple[Scan | Stage, Node]] = []
        """Of the query and those within it: what each scan and stage gives."""

    def _slot(self, knob: Knob) -> tuple[int | None, float]:
        """Of a knob, and the share at which it gives all."""
        whole = self._turned(knob)
        if whole is None:
            return None, 1.0
        self.knobs.append(knob)
        return len(self.knobs) - 1, whole

    def steps(self, query: Query, *, joined: bool = False) -> tuple[Node, ...]:
        """joined: its window counts at the join above."""
        rows = list(self._rows_of(query))
        place = self._scans
        self._scans += 1
        slot, whole = self._slot(Knob(place, "window"))
        rate_slot, _ = self._slot(Knob(place, "rate"))
        first = query.stages[0] if query.stages else None
        at_join = joined or _keeps_windows(first)
        own = WindowCut(_up_to(whole, 1.0), slot)
        late = self._late.get(query.source, 0.0)
        scan = Input(late) if at_join else Input(late, own)
        found: list[Node] = [Sampled(scan, rate_slot)]
        self.operators.append((query.scan, found[0]))
        window: _Window | None = _Window(_span(query.scan), whole, slot) if at_join else None
        for place, stage in enumerate(query.stages):
            found.append(self._above(stage, found[-1], rows[place], rows[place + 1], window))
            self.operators.append((stage, found[-1]))
            if not isinstance(stage, Project | Filter):
                window = None if window is None else _Window(window.span, 1.0, None)
        return tuple(found)

    def _above(self, stage: Stage, below: Node, rows: float, given: float, window: _Window | None) -> Node:
        match stage:
            case Join(inner, kind):
                if kind == "anti":
                    return self._negated(stage, below, rows, given)
                knob = Knob(self._scans, "window")
                right = self.steps(inner, joined=_is_plain(inner))[-1]
                if not _is_plain(inner):
                    return Joined(below, right)
                slot = self.knobs.index(knob) if knob in self.knobs else None
                other = _up_to(self._turned(knob) or 1.0, _span(inner.scan))
                left = Table.linear(1.0) if window is None else _up_to(window.whole, window.span)
                cut = WindowCut(left, None if window is None else window.slot, other, slot)
                return Joined(below, right, cut)
            case SemiJoin(negated=False):
                return Joined(below, self.steps(stage.inner)[-1])
            case SemiJoin():
                return self._negated(stage, below, rows, given)
            case SetOperation("union", inner):
                right_rows = self._rows_of(inner)[-1]
                return United((below, self.steps(inner)[-1]), (max(rows, 1e-9), max(right_rows, 1e-9)))
            case SetOperation("intersect", inner):
                return Joined(below, self.steps(inner)[-1])
            case SetOperation():
                return self._negated(stage, below, rows, given)
            case Distinct():
                return Deduplicated(below, _copies(rows, given))
            case Aggregate(keys, calls):
                scaled = self._scaled and all(call.function in SCALED and not call.distinct for call in calls)
                groups = _copies(rows, given) if keys else ()
                each = rows / max(given, 1.0)
                return Aggregated(below, 1.0 / max(each, 1.0), groups, scaled=scaled)
            case _:
                return Selected(below)

    def _negated(self, stage: Join | SemiJoin | SetOperation, below: Node, rows: float, given: float) -> Node:
        overlap = min(1.0, max(0.0, 1.0 - given / rows)) if rows > 0.0 else 0.0
        return Excepted(below, self.steps(stage.inner)[-1], overlap)


@dataclass(frozen=True, slots=True)
class _Window:
    """Of the left input of a join. span: in ms, or rows; whole: the share at which its slot gives all; slot:
    None: of rows joined before, or none that can be turned.
    """

    span: float
    whole: float
    slot: int | None


def _up_to(share: float, whole: float) -> Table:
    """From (0, 0) to (share, whole), and no more."""
    return Table((0.0, share, 1.0), (0.0, whole, whole)) if share < 1.0 else Table.linear(whole)


def _span(scan: Scan) -> float:
    """What matches are taken to be in proportion to; 1 where the window has no length."""
    if isinstance(scan.window, RowWindow):
        return float(scan.window.rows)
    return float(scan.window.reach_ms or 1)


def _keeps_windows(first: Stage | None) -> bool:
    return isinstance(first, Join) and first.kind != "anti" and _is_plain(first.inner)


def _is_plain(query: Query) -> bool:
    """Whether it is rows of a window, selected and projected."""
    return all(isinstance(stage, Project | Filter) for stage in query.stages)


def _copies(rows: float, values: float) -> tuple[tuple[int, float], ...]:
    """(copies, share of values) with the mean that rows and values make, at most two counts."""
    mean = min(float(COPIES_MAX), max(1.0, rows / values if values > 0.0 else 1.0))
    low = int(mean)
    share = mean - low
    return ((low, 1.0 - share), (low + 1, share)) if share > 0.0 else ((low, 1.0),)


def approximate_steps(
    query: Query,
    rows_of: RowsOf,
    late: Mapping[SourceName, float] = NONE_LATE,
    asked: Query | None = None,
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
    shape = shape_of_query(query if asked is None else asked, rows_of, late, scaled=asked is not None)
    return shape.expected(shares)


def approximate_operators(
    query: Query,
    rows_of: RowsOf,
    late: Mapping[SourceName, float] = NONE_LATE,
    asked: Query | None = None,
) -> Sequence[tuple[Scan | Stage, Outcome]]:
    """The same for the scans and stages of a query and of those within it, each by itself; nothing where all
    is exact, or nothing is known. In the order of the text.
    """
    timely = not any(late.get(name, 0.0) > 0.0 for name in query.sources)
    if is_exact(query) and timely and (asked is None or asked == query):
        return ()
    shares = shares_of(query, query) if asked is None else shares_given(asked, query)
    if shares is None:
        return ()
    builder = _Builder(rows_of, late, lambda knob: 1.0, asked is not None)
    builder.steps(query if asked is None else asked)
    given = builder.operators
    if asked is not None:
        plain = _Builder(rows_of, late, lambda knob: 1.0, False)
        plain.steps(query)
        if len(plain.operators) != len(given):  # it scales what it counts
            return ()
        given = [(of, node) for (of, _), (_, node) in zip(plain.operators, given, strict=True)]
    shape = QueryShape(tuple(node for _, node in given), tuple(builder.knobs))
    return tuple(zip((of for of, _ in given), shape.expected(shares), strict=True))
