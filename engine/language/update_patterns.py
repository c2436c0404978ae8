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

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from engine.algebra.join.stage import JoinKind
from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
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

    def meeting(
        self, kind: JoinKind | None, keys: Iterable[tuple[Expression, Expression]], inner: PatternEdge
    ) -> PatternEdge:
        """What leaves an operator that looks for partners of these rows among those of ``inner``.

        kind: of the join that gives as many rows; None: ASOF. keys: pairs of expressions that have to be
        equal, over the columns of each.
        """
        if self._meets_at_once(inner, keys):
            whole = _whole(kind, self.pattern, inner.pattern)
            return PatternEdge(whole, self.windows, None, self.in_time, self.span_with(inner), self.merges)
        pattern = _joined(kind, self.pattern, inner.pattern)
        return PatternEdge(pattern, WindowColumns({}, {}), None, in_time=False, merges=self.merges)

    def _meets_at_once(self, inner: PatternEdge, keys: Iterable[tuple[Expression, Expression]]) -> bool:
        """Whether rows that are equal in these come at one instant, as those of closed windows."""
        if max(self.pattern, inner.pattern) > Pattern.WKS:
            return False
        told = [(self.windows.told(key), inner.windows.told(other)) for key, other in keys]
        return any(one is not None and one == other for one, other in told)

    def span_with(self, inner: PatternEdge) -> Window | None:
        """When rows go that go with those of both; None: one window does not say."""
        if Pattern.MON in (self.pattern, inner.pattern):
            return inner.span if self.pattern is Pattern.MON else self.span
        return self.span if self.span == inner.span else None

    def __str__(self) -> str:
        return self.pattern.name if self.key is None else f"{self.pattern.name} by key"


def update_patterns(query: Query, tables: Container[SourceName] = ()) -> tuple[Pattern, ...]:
    """The pattern of what the scan gives, then of what each stage gives. tables: which sources are."""
    return tuple(edge.pattern for edge in edges_of(query, tables))


def edges_of(query: Query, tables: Container[SourceName] = ()) -> list[PatternEdge]:
    """What leaves the scan, then each stage. tables: which sources are."""
    edges = [PatternEdge.of_scan(query.scan, tables)]
    for stage in query.stages:
        inner = None if stage.right_input is None else edges_of(stage.right_input, tables)[-1]
        edges.append(edge_above(stage, edges[-1], inner))
    return edges


@asked_of("pattern", each=True)
def edge_above(stage: Stage, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    """What leaves a stage over this edge. inner: what leaves its second input, None: it has none."""
    raise AssertionError(stage)


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


def _joined(kind: JoinKind | None, below: Pattern, inner: Pattern) -> Pattern:
    return stateful(max(below, inner)) if kind in ("inner", "semi") else Pattern.STR


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


def stateful(below: Pattern) -> Pattern:
    """The pattern of what keeps rows to know when one goes: at least WK, but MON over MON."""
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

    def seen_as(self, given: Iterable[Expression]) -> WindowColumns:
        """The window columns among columns that are computed from these."""
        told = {place: self.told(expression) for place, expression in enumerate(given)}
        return WindowColumns({}, {place: what for place, what in told.items() if what is not None})
