"""Update patterns: in which way the rows on each edge of a plan come and go (Golab and Oezsu, section 5.2).

    MON   rows come and never go
    WKS   rows go in the order in which they came, each at an instant known when it comes
    WK    rows go in another order, still at instants that can be told without a sign from below
    STR   some rows go at instants that nothing tells beforehand: whoever keeps them must be told

The rules, where the paper leaves room, with what closed windows add:

*   A scan of what only grows (no BEGIN, or a constant one) is MON, one whose beginning moves with NOW is
    WKS, one that counts rows is STR, since the next row pushes one out whenever it comes. Windows of a table
    function appear when they close, and then they are rows like others.
*   Projections, conditions and orderings pass on what they get.
*   Groups are WK whatever they are made of. DISTINCT is WK, but MON over MON.
*   Grouping, numbering or DISTINCT by the end of a closed window keeps MON and WKS: all rows of such a window
    come at one instant and go at one.
*   The first rows by a key are STR, since a better row pushes one out; the first in the order of time are WK,
    and MON over MON. Row numbers likewise.
*   IN and EXISTS are at least WK, STR where a side is, and MON between MON; negated they are STR.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from engine.language.expressions import Column, Expression
from engine.language.query import (
    Aggregate,
    Distinct,
    Limit,
    Project,
    Query,
    RowNumber,
    Scan,
    SemiJoin,
    Sort,
    Stage,
)
from engine.windows.assignment import WINDOW_COLUMNS, Hop
from engine.windows.clauses import RowWindow


class Pattern(IntEnum):
    """From the simplest to the most demanding."""

    MON = 0
    WKS = 1
    WK = 2
    STR = 3


def update_patterns(query: Query) -> tuple[Pattern, ...]:
    """The pattern of what the scan gives, then of what each stage gives."""
    return tuple(_patterns(query))


def scan_pattern(scan: Scan) -> Pattern:
    """The pattern of a leaf."""
    window = scan.window
    if isinstance(window, RowWindow):
        return Pattern.STR
    return Pattern.WKS if window.begin is not None and window.begin.relative else Pattern.MON


def _patterns(query: Query) -> Iterator[Pattern]:
    pattern = scan_pattern(query.scan)
    yield pattern
    columns = _WindowColumns(query.scan)
    by_key = False
    for stage in query.stages:
        pattern = _above(stage, pattern, columns, by_key)
        columns.pass_through(stage)
        by_key = isinstance(stage, Sort) or (by_key and not isinstance(stage, Aggregate))
        yield pattern


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
            return Pattern.STR if order else _stateful(below)
        case Limit():
            return Pattern.STR if by_key else _stateful(below)
        case SemiJoin(inner=inner, negated=negated):
            return Pattern.STR if negated else _stateful(max(below, update_patterns(inner)[-1]))
        case _:
            return below


def _stateful(below: Pattern) -> Pattern:
    return below if below is Pattern.MON else max(below, Pattern.WK)


class _WindowColumns:
    """Which columns tell a table function's window, on the way up through the stages.

    A window's end does, and for windows of one size its start. ``places`` None: the scan's own columns,
    told by their names, which no column of the stream has.
    """

    def __init__(self, scan: Scan) -> None:
        self._places: set[int] | None = None if scan.assignment is not None else set()
        self._names = WINDOW_COLUMNS if isinstance(scan.assignment, Hop) else WINDOW_COLUMNS[1:]

    def _is_one(self, expression: Expression) -> bool:
        if not isinstance(expression, Column):
            return False
        return expression.name in self._names if self._places is None else expression.index in self._places

    def among(self, expressions: Iterable[Expression]) -> bool:
        """Whether one of these is such a column."""
        return any(self._is_one(expression) for expression in expressions)

    @property
    def any(self) -> bool:
        """Whether rows still have one."""
        return self._places is None or bool(self._places)

    def pass_through(self, stage: Stage) -> None:
        """On to the columns that a stage gives."""
        match stage:
            case Project(outputs):
                given = [output.expression for output in outputs]
            case Aggregate(keys=keys):
                given = [key.expression for key in keys]
            case _:
                return
        self._places = {place for place, expression in enumerate(given) if self._is_one(expression)}
