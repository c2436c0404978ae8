"""Update patterns: in which way the rows on each edge of a plan come and go (Golab and Oezsu, section 5.2).

    MON   rows come and never go
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
*   A join with the versions of a table as of the instant of a row (NON RETROACTIVE) passes on what the rows
    do: no update touches what has come.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from engine.language.expressions import Column, Expression
from engine.language.query import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Query,
    RowNumber,
    Scan,
    SemiJoin,
    Sort,
    Stage,
)
from engine.model.source import SourceName
from engine.windows.assignment import WINDOW_COLUMNS, Hop
from engine.windows.clauses import RowWindow


class Pattern(IntEnum):
    """From the simplest to the most demanding."""

    MON = 0
    WKS = 1
    WK = 2
    STR = 3


@dataclass(frozen=True, slots=True)
class Edge:
    """The rows that leave an operator, as far as the rules go by them.

    windows: which columns tell a table function's window. key: the places of the columns by which a row takes
    the place of another, None: no row does. in_time: rows are in the order of time, not of a key.
    """

    pattern: Pattern
    windows: WindowColumns
    key: tuple[int, ...] | None = None
    in_time: bool = True

    @classmethod
    def of_scan(cls, scan: Scan, tables: Container[SourceName] = ()) -> Edge:
        """What leaves a leaf. tables: which sources are."""
        return cls(scan_pattern(scan, tables), WindowColumns.of_scan(scan))

    def above(self, stage: Stage) -> Edge:
        """What leaves a stage of one input over this one."""
        pattern = self._pattern_above(stage)
        windows, key = self.windows.above(stage), self._key_above(stage)
        in_time = not isinstance(stage, Sort) and (self.in_time or isinstance(stage, Aggregate))
        return Edge(pattern, windows, key if pattern is Pattern.WK else None, in_time)

    def joined(self, stage: Join | SemiJoin, inner: Edge) -> Edge:
        """What leaves a join with another."""
        if _as_of_each_row(stage):
            return replace(self, key=None)
        kind = _kind_of(stage)
        told = [(self.windows.told(key), inner.windows.told(other)) for key, other in _keys_of(stage)]
        meet_at_once = any(one is not None and one == other for one, other in told)
        if meet_at_once and max(self.pattern, inner.pattern) <= Pattern.WKS:
            return Edge(_whole(kind, self.pattern, inner.pattern), self.windows, None, self.in_time)
        return Edge(_joined(kind, self.pattern, inner.pattern), WindowColumns({}, {}), None, in_time=False)

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


def edges_of(query: Query, tables: Container[SourceName] = ()) -> list[Edge]:
    """What leaves the scan, then each stage. tables: which sources are."""
    edges = [Edge.of_scan(query.scan, tables)]
    for stage in query.stages:
        below = edges[-1]
        if not isinstance(stage, Join | SemiJoin):
            edges.append(below.above(stage))
        else:
            *_, inner = edges_of(stage.inner, tables)
            edges.append(below.joined(stage, inner))
    return edges


def scan_pattern(scan: Scan, tables: Container[SourceName] = ()) -> Pattern:
    """The pattern of a leaf. A history is one of versions, which only come."""
    if scan.history:
        return Pattern.MON
    window = scan.window
    if scan.source in tables or isinstance(window, RowWindow):
        return Pattern.STR
    return Pattern.WKS if window.begin is not None and window.begin.relative else Pattern.MON


# --- joins ----------------------------------------------------------------------------------------


def _as_of_each_row(stage: Join | SemiJoin) -> bool:
    """Whether it joins with versions of a table, and so as they were at the instant of each row."""
    if isinstance(stage, SemiJoin) or stage.kind in ("right", "full"):
        return False
    return stage.latest is not None and stage.inner.scan.history


def _kind_of(stage: Join | SemiJoin) -> JoinKind | None:
    """None: ASOF, whatever else it is."""
    if isinstance(stage, SemiJoin):
        return "anti" if stage.negated else "semi"
    return None if stage.latest is not None else stage.kind


def _keys_of(stage: Join | SemiJoin) -> Sequence[tuple[Expression, Expression]]:
    """Pairs of expressions that have to be equal, over the columns of each input."""
    if isinstance(stage, Join):
        return stage.keys
    columns = [Column(place, name, type_) for place, (name, type_) in enumerate(stage.inner.columns)]
    return list(zip(stage.keys, columns, strict=False))


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
        """Of a leaf."""
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

    def above(self, stage: Stage) -> WindowColumns:
        """Those of what a stage gives."""
        match stage:
            case Project(outputs):
                given = [output.expression for output in outputs]
            case Aggregate(keys):
                given = [key.expression for key in keys]
            case _:
                return self
        told = {place: self.told(expression) for place, expression in enumerate(given)}
        return WindowColumns({}, {place: what for place, what in told.items() if what is not None})
