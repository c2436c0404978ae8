"""Update patterns: in which way the rows on each edge of a plan come and go (Golab and Oezsu, section 5.2).

    MON   rows come, and go by retention alone, which all patterns leave out (:mod:`engine.language.exits`)
    WKS   rows go in the order in which they came, each at an instant known when it comes
    WK    rows go in another order, still at instants that can be told without a sign from below
    STR   some rows go at instants that nothing tells beforehand: whoever keeps them must be told

The rules, where the paper leaves room, with what closed windows add:

*   A scan of what only grows (no BEGIN, or a constant one) is MON, one whose beginning moves with NOW is
    WKS, one that counts rows is STR, since the next row pushes one out whenever it comes. Windows of a table
    function appear when they close, and then they are rows like others. A table is STR: any update takes a
    row away.
*   Projections, conditions and orderings pass on what they get.
*   Groups are WK whatever they are made of, and *by key*: a group's next row takes the place of its last one.
    DISTINCT is WK, but MON over MON.
*   Grouping, numbering or DISTINCT by the end of a closed window keeps MON and WKS: all rows of such a window
    come at one instant and go at one.
*   The first rows by a key are STR, since a better row pushes one out; the first in the order of time are WK,
    and MON over MON. Row numbers likewise.
*   A join, IN and EXISTS are at least WK, STR where a side is, and MON between MON; what keeps rows because
    they have no partner (LEFT, RIGHT, FULL, ANTI, NOT IN) is STR, and so is ASOF, where a later row takes the
    partner's place. Their rows are in no order of time.
*   A join by the ends of closed windows keeps MON and WKS: both rows come at one instant. Rows without a
    partner stay so where the other side never loses one.
*   UNION ALL is MON between MON, and WKS between WKS of one window, whose rows go as long after they came.
    Else it is WK, as of MON with WKS, whose rows go past those that stay; STR where a side is. Its rows are
    in the order of time where both are rows of streams, by windows that end alike.
*   INTERSECT is a join of whole rows. EXCEPT is STR: a right row takes the place of a left one. Between
    closed windows, by the end of which rows are compared, both keep what joins do: all rows of such a window
    are there at once, on both sides.
*   A window over the changes of a relation as a stream is like one over a source, whatever is below it.
*   A join with the versions of a table as of the instant of a row (NON RETROACTIVE) passes on what the rows
    do: no update touches what has come.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join, JoinKind
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.language.query import Query, Scan
from engine.model.expressions import Column, Expression
from engine.model.source import SourceName
from engine.windows.assignment import WINDOW_COLUMNS, Hop
from engine.windows.clauses import Instant, RowWindow, TimeWindow, Window


@dataclass(frozen=True, slots=True)
class Merging:
    """The end and the step of the windows that let rows in that are in the order of time; no end: of rows
    that come in another.
    """

    end: Instant | None = None
    slide_ms: int | None = None


class Pattern(IntEnum):
    """From the simplest to the most demanding."""

    MON = 0
    WKS = 1
    WK = 2
    STR = 3


@dataclass(frozen=True, slots=True)
class PatternEdge:
    """The rows that leave an operator, as far as the rules go by them.

    windows: which columns tell a table function's window. key: the places of the columns by which a row takes
    the place of another, None: no row does. in_time: rows are in the order of time, not of a key. span: the
    window clause that says when rows of a WKS edge go, None where it is not one. merges: UNION ALL puts them
    in the order of time: they are rows of a stream in the order of it, by a window with this end and step.
    """

    pattern: Pattern
    windows: WindowColumns
    key: tuple[int, ...] | None = None
    in_time: bool = True
    span: Window | None = None
    merges: Merging | None = None

    @classmethod
    def of_scan(cls, scan: Scan, tables: Container[SourceName] = ()) -> PatternEdge:
        """What leaves a leaf. tables: which sources are."""
        window, merges = scan.window, None
        if scan.source not in tables and scan.assignment is None:
            merges = Merging(window.end, window.slide_ms) if isinstance(window, TimeWindow) else Merging()
        return cls(scan_pattern(scan, tables), WindowColumns.of_scan(scan), span=window, merges=merges)

    @classmethod
    def of_window(cls, window: Window) -> PatternEdge:
        """What leaves a window over a stream that is no source: its elements are in the order of time."""
        merges = Merging(window.end, window.slide_ms) if isinstance(window, TimeWindow) else Merging()
        return cls(_window_pattern(window), WindowColumns({}, {}), span=window, merges=merges)

    def above(self, stage: Stage) -> PatternEdge:
        """What leaves a stage of one input over this one."""
        if isinstance(stage, Streamed):
            return PatternEdge.of_window(stage.window)
        pattern = self._pattern_above(stage)
        windows, key = self.windows.above(stage), self._key_above(stage)
        in_time = not isinstance(stage, Sort) and (self.in_time or isinstance(stage, Aggregate))
        merges = None if isinstance(stage, Aggregate | Sort) else self.merges
        return PatternEdge(
            pattern, windows, key if pattern is Pattern.WK else None, in_time, self.span, merges
        )

    def joined(self, stage: Join | SemiJoin, inner: PatternEdge) -> PatternEdge:
        """What leaves a join with another."""
        if _as_of_each_row(stage):
            return replace(self, key=None, merges=None)
        kind, merges = _kind_of(stage), self.merges if isinstance(stage, SemiJoin) else None
        if self._meets_at_once(inner, _keys_of(stage)):
            whole = _whole(kind, self.pattern, inner.pattern)
            return PatternEdge(whole, self.windows, None, self.in_time, self._span_with(inner), merges)
        pattern = _joined(kind, self.pattern, inner.pattern)
        return PatternEdge(pattern, WindowColumns({}, {}), None, in_time=False, merges=merges)

    def combined(self, stage: SetOperation, inner: PatternEdge) -> PatternEdge:
        """What leaves a set operation of this, its left input, and another."""
        if stage.kind == "union":
            return self._united(inner)
        kind: JoinKind = "semi" if stage.kind == "intersect" else "anti"
        if self._meets_at_once(inner, _compared(stage)):
            whole = _whole(kind, self.pattern, inner.pattern)
            return PatternEdge(whole, self.windows, None, self.in_time, self._span_with(inner), self.merges)
        pattern = _joined(kind, self.pattern, inner.pattern)
        return PatternEdge(pattern, WindowColumns({}, {}), None, in_time=False, merges=self.merges)

    def _united(self, inner: PatternEdge) -> PatternEdge:
        """What leaves UNION ALL. Rows of both that are in the order of time are so together if they come in
        it, too: a window that ends before NOW would let rows in below others.
        """
        pattern = max(self.pattern, inner.pattern)
        alike = self.pattern is inner.pattern and self.span is not None and self.span == inner.span
        if pattern is Pattern.WKS and not alike:
            pattern = Pattern.WK
        merges = None
        if self.merges is not None and inner.merges is not None:
            merges = self.merges if self.merges == inner.merges else Merging()
        in_time = merges is not None and merges.end is not None and self.in_time and inner.in_time
        return PatternEdge(
            pattern, self.windows.common(inner.windows), None, in_time, self._span_with(inner), merges
        )

    def _meets_at_once(self, inner: PatternEdge, keys: Iterable[tuple[Expression, Expression]]) -> bool:
        """Whether rows that are equal in these come at one instant, as those of closed windows."""
        if max(self.pattern, inner.pattern) > Pattern.WKS:
            return False
        told = [(self.windows.told(key), inner.windows.told(other)) for key, other in keys]
        return any(one is not None and one == other for one, other in told)

    def _span_with(self, inner: PatternEdge) -> Window | None:
        """When rows go that go with those of both; None: one window does not say."""
        if Pattern.MON in (self.pattern, inner.pattern):
            return inner.span if self.pattern is Pattern.MON else self.span
        return self.span if self.span == inner.span else None

    def _pattern_above(self, stage: Stage) -> Pattern:
        below = self.pattern
        match stage:
            case Aggregate(keys=keys):
                whole = self.windows.among([key.expression for key in keys])
                return below if whole and below <= Pattern.WKS else Pattern.WK
            case Distinct():
                return below if self.windows.any else _stateful(below)
            case RowNumber(keys=keys, order=order):
                if self.windows.among(keys) and below <= Pattern.WKS:
                    return below
                return Pattern.STR if order or not self.in_time else _stateful(below)
            case Limit():
                return _stateful(below) if self.in_time else Pattern.STR
            case _:
                return below

    def _key_above(self, stage: Stage) -> tuple[int, ...] | None:
        match stage:
            case Aggregate(keys=keys):
                return tuple(range(len(keys)))
            case Project(outputs) if self.key is not None:
                places = {
                    output.expression.index: place
                    for place, output in enumerate(outputs)
                    if isinstance(output.expression, Column)
                }
                kept = [places[place] for place in self.key if place in places]
                return tuple(kept) if len(kept) == len(self.key) else None
            case Filter() | Sort():
                return self.key
        return None

    def __str__(self) -> str:
        return self.pattern.name if self.key is None else f"{self.pattern.name} by key"


def update_patterns(query: Query, tables: Container[SourceName] = ()) -> tuple[Pattern, ...]:
    """The pattern of what the scan gives, then of what each stage gives. tables: which sources are."""
    return tuple(edge.pattern for edge in edges_of(query, tables))


def edges_of(query: Query, tables: Container[SourceName] = ()) -> list[PatternEdge]:
    """What leaves the scan, then each stage. tables: which sources are."""
    edges = [PatternEdge.of_scan(query.scan, tables)]
    for stage in query.stages:
        below = edges[-1]
        if isinstance(stage, SetOperation):
            *_, inner = edges_of(stage.inner, tables)
            edges.append(below.combined(stage, inner))
        elif isinstance(stage, Join | SemiJoin):
            *_, inner = edges_of(stage.inner, tables)
            edges.append(below.joined(stage, inner))
        else:
            edges.append(below.above(stage))
    return edges


def scan_pattern(scan: Scan, tables: Container[SourceName] = ()) -> Pattern:
    """The pattern of a leaf. A history is one of versions, which only come."""
    if scan.history:
        return Pattern.MON
    return Pattern.STR if scan.source in tables else _window_pattern(scan.window)


def _window_pattern(window: Window) -> Pattern:
    if isinstance(window, RowWindow):
        return Pattern.STR
    return Pattern.WKS if window.begin is not None and window.begin.relative else Pattern.MON


# --- joins ----------------------------------------------------------------------------------------


def _as_of_each_row(stage: Join | SemiJoin) -> bool:
    """Whether it joins with versions of a table, and so as they were at the instant of each row."""
    if isinstance(stage, SemiJoin) or stage.kind in ("right", "full"):
        return False
    return stage.latest is not None and stage.inner.scan.history


def _kind_of(stage: Join | SemiJoin) -> JoinKind | None:
    """The kind of the join, a semi-join's too; None for an ASOF join, whatever else it is."""
    if isinstance(stage, SemiJoin):
        return "anti" if stage.negated else "semi"
    return None if stage.latest is not None else stage.kind


def _keys_of(stage: Join | SemiJoin) -> Sequence[tuple[Expression, Expression]]:
    """Pairs of expressions that have to be equal, over the columns of each input."""
    if isinstance(stage, Join):
        return stage.keys
    columns = [Column(place, name, type_) for place, (name, type_) in enumerate(stage.inner.columns)]
    return list(zip(stage.keys, columns, strict=False))


def _compared(stage: SetOperation) -> Iterable[tuple[Expression, Expression]]:
    """Pairs of columns in which rows of both inputs are compared."""
    given = [Column(place, name, type_) for place, (name, type_) in enumerate(stage.inner.columns)]
    if stage.on is None:
        return zip(given, given, strict=True)
    return [(Column(place, "", given[other].type), given[other]) for place, other in stage.on]


def _joined(kind: JoinKind | None, below: Pattern, inner: Pattern) -> Pattern:
    return _stateful(max(below, inner)) if kind in ("inner", "semi") else Pattern.STR


def _whole(kind: JoinKind | None, below: Pattern, inner: Pattern) -> Pattern:
    """The pattern of a join by the ends of windows, of sides that are MON or WKS."""
    match kind:
        case "inner" | "semi":
            return max(below, inner)
        case "left" | "anti":
            return below if inner is Pattern.MON else Pattern.STR
        case "right":
            return inner if below is Pattern.MON else Pattern.STR
        case "full":
            return Pattern.MON if below is inner is Pattern.MON else Pattern.STR
        case _:
            return Pattern.STR


def _stateful(below: Pattern) -> Pattern:
    return below if below is Pattern.MON else max(below, Pattern.WK)


@dataclass(frozen=True, slots=True)
class WindowColumns:
    """Which columns tell a table function's window, on the way up through the stages.

    A window's end does, and for windows of one size its start. names: those of the scan's own columns, by
    which they are told as long as ``places`` is None: no column of the stream has such a name. places: those
    of a stage's columns.
    """

    names: Mapping[str, object]
    places: Mapping[int, object] | None

    @classmethod
    def of_scan(cls, scan: Scan) -> WindowColumns:
        """The window columns of a leaf."""
        if scan.assignment is None:
            return cls({}, {})
        start, end = WINDOW_COLUMNS
        names: dict[str, object] = {end: end}
        if isinstance(scan.assignment, Hop):
            names[start] = start, scan.assignment.size_ms
        return cls(names, None)

    def told(self, expression: Expression) -> object | None:
        """What an expression tells of a window: alike for windows that close together. None: nothing."""
        if not isinstance(expression, Column):
            return None
        return self.names.get(expression.name) if self.places is None else self.places.get(expression.index)

    def among(self, expressions: Iterable[Expression]) -> bool:
        """Whether one of these is such a column."""
        return any(self.told(expression) is not None for expression in expressions)

    @property
    def any(self) -> bool:
        """Whether rows still have one."""
        return self.places is None or bool(self.places)

    def common(self, other: WindowColumns) -> WindowColumns:
        """The columns that tell the same in both, of stages that compute columns."""
        one, two = self.places or {}, other.places or {}
        return WindowColumns({}, {place: what for place, what in one.items() if two.get(place) == what})

    def above(self, stage: Stage) -> WindowColumns:
        """The window columns of what a stage gives."""
        match stage:
            case Project(outputs):
                given = [output.expression for output in outputs]
            case Aggregate(keys):
                given = [key.expression for key in keys]
            case _:
                return self
        told = {place: self.told(expression) for place, expression in enumerate(given)}
        return WindowColumns({}, {place: what for place, what in told.items() if what is not None})
