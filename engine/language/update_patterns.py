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
*   Groups are WK whatever they are made of. DISTINCT is WK, but MON over MON.
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

from collections.abc import Container, Iterable
from enum import IntEnum

from engine.language.expressions import Column, Expression
from engine.language.query import (
    Aggregate,
    Distinct,
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


def update_patterns(query: Query, tables: Container[SourceName] = ()) -> tuple[Pattern, ...]:
    """The pattern of what the scan gives, then of what each stage gives. tables: which sources are."""
    patterns, _ = _flow(query, tables)
    return tuple(patterns)


def scan_pattern(scan: Scan, tables: Container[SourceName] = ()) -> Pattern:
    """The pattern of a leaf. A history is one of versions, which only come."""
    if scan.history:
        return Pattern.MON
    window = scan.window
    if scan.source in tables or isinstance(window, RowWindow):
        return Pattern.STR
    return Pattern.WKS if window.begin is not None and window.begin.relative else Pattern.MON


def _flow(query: Query, tables: Container[SourceName]) -> tuple[list[Pattern], _WindowColumns]:
    """The patterns, and which of the last columns tell a window."""
    columns = _WindowColumns(query.scan)
    patterns = [scan_pattern(query.scan, tables)]
    by_key = False
    for stage in query.stages:
        below = patterns[-1]
        if isinstance(stage, Join | SemiJoin):
            inner, others = _flow(stage.inner, tables)
            if _as_of_each_row(stage):
                patterns.append(below)
                continue
            together = _by_window(stage, columns, others) and max(below, inner[-1]) <= Pattern.WKS
            patterns.append((_whole if together else _joined)(_kind_of(stage), below, inner[-1]))
            if not together:
                columns.lose()
                by_key = True
            continue
        patterns.append(_above(stage, below, columns, by_key))
        columns.pass_through(stage)
        by_key = isinstance(stage, Sort) or (by_key and not isinstance(stage, Aggregate))
    return patterns, columns


def _above(stage: Stage, below: Pattern, columns: _WindowColumns, by_key: bool) -> Pattern:
    """The pattern above a stage. by_key: whether what comes is in the order of a key, not of time."""
    match stage:
        case Aggregate(keys=keys):
            whole = columns.among([key.expression for key in keys])
            return below if whole and below <= Pattern.WKS else Pattern.WK
        case Distinct():
            return below if columns.any else _stateful(below)
        case RowNumber(keys=keys, order=order):
            if columns.among(keys) and below <= Pattern.WKS:
                return below
            return Pattern.STR if order or by_key else _stateful(below)
        case Limit():
            return Pattern.STR if by_key else _stateful(below)
        case _:
            return below


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


def _by_window(stage: Join | SemiJoin, columns: _WindowColumns, others: _WindowColumns) -> bool:
    """Whether partners are rows of windows that close at one instant."""
    if isinstance(stage, SemiJoin):
        told = [(columns.told(key), others.told_at(place)) for place, key in enumerate(stage.keys)]
    else:
        told = [(columns.told(key), others.told(other)) for key, other in stage.keys]
    return any(one is not None and one == other for one, other in told)


def _stateful(below: Pattern) -> Pattern:
    return below if below is Pattern.MON else max(below, Pattern.WK)


class _WindowColumns:
    """Which columns tell a table function's window, on the way up through the stages.

    A window's end does, and for windows of one size its start. ``places`` None: the scan's own columns,
    told by their names, which no column of the stream has.
    """

    def __init__(self, scan: Scan) -> None:
        start, end = WINDOW_COLUMNS
        self._names: dict[str, object] = {end: end}
        if isinstance(scan.assignment, Hop):
            self._names[start] = start, scan.assignment.size_ms
        self._places: dict[int, object] | None = None if scan.assignment is not None else {}

    def told(self, expression: Expression) -> object | None:
        """What an expression tells of a window: alike for windows that close together. None: nothing."""
        if not isinstance(expression, Column):
            return None
        return self._names.get(expression.name) if self._places is None else self.told_at(expression.index)

    def told_at(self, place: int) -> object | None:
        """The same of a column that a stage gives."""
        return None if self._places is None else self._places.get(place)

    def among(self, expressions: Iterable[Expression]) -> bool:
        """Whether one of these is such a column."""
        return any(self.told(expression) is not None for expression in expressions)

    @property
    def any(self) -> bool:
        """Whether rows still have one."""
        return self._places is None or bool(self._places)

    def lose(self) -> None:
        """Rows of a window no longer come and go together."""
        self._places = {}

    def pass_through(self, stage: Stage) -> None:
        """On to the columns that a stage gives."""
        match stage:
            case Project(outputs):
                given = [output.expression for output in outputs]
            case Aggregate(keys=keys):
                given = [key.expression for key in keys]
            case _:
                return
        told = {place: self.told(expression) for place, expression in enumerate(given)}
        self._places = {place: what for place, what in told.items() if what is not None}
