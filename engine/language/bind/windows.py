"""Window clauses to windows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.language.bind.scalar import bind_condition, bind_scalar
from engine.language.bind.scope import Scope
from engine.language.grammar import nodes
from engine.language.instants import parse_timestamp
from engine.language.places import shown
from engine.language.rules import rewrite
from engine.model.expressions import Expression
from engine.model.types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from engine.windows.clauses import NOW, UNBOUNDED, Instant, RowWindow, TimeWindow, Window
from tureen.errors import SyntaxRefused, TypeMismatch


def bind_window(
    clause: exp.Expr | None, ends: exp.Expr | None, scope: Scope
) -> tuple[Window, Expression | None]:
    """The window of a query, without a clause [UNBOUNDED], and the WHERE inside a window of time, which
    narrows the rows as the query's own does. That of a row window is part of the window.

    Raises SyntaxRefused, TypeMismatch, LimitExceeded, and what binding an expression raises.
    """
    if ends is not None:
        if clause is not None:
            raise scope.place(ends).refuse(
                SyntaxRefused,
                "a query has one window",
                hint="write the brackets after the stream, or BEGIN ... END ..., not both",
            )
        return _begin_end(ends, scope), None
    if clause is None:
        return UNBOUNDED, None
    where = clause.args.get("where")
    condition = None if where is None else bind_condition(where, scope)
    if isinstance(clause, nodes.RowsClause):
        return _row_window(clause, condition, scope), None
    begin = None if isinstance(clause, nodes.UnboundedClause) else _begin(clause, scope)
    slide = clause.args.get("slide")
    slide_ms = None if slide is None else bind_duration(slide, scope, "SLIDE is")
    return TimeWindow(begin, NOW, slide_ms), condition


def bind_down_to(clause: exp.Expr | None, scope: Scope) -> int | None:
    """How short the window of a clause may become, in ms; None where that is not said.

    Raises SyntaxRefused where that is nothing, or longer than the window.
    """
    written = None if clause is None else clause.args.get("down_to")
    if clause is None or written is None:
        return None
    least_ms = bind_duration(written, scope, "a window stays")
    if least_ms > int(clause.this):
        raise scope.place(written).refuse(
            SyntaxRefused,
            "DOWN TO is longer than the window",
            hint="write the longer time first, as in [RANGE 1 HOUR DOWN TO 10 MINUTES]",
        )
    return least_ms


def _begin(clause: exp.Expr, scope: Scope) -> Instant:
    width_ms = int(clause.this) if isinstance(clause, nodes.RangeClause) else 0
    most_ms = scope.binding.limits.window_ms_max
    if width_ms > most_ms:
        raise scope.place(clause).exceeded("window_ms_max", most_ms, width_ms, hint="write [UNBOUNDED]")
    return Instant(relative=True, ms=-width_ms)


def _row_window(clause: exp.Expr, condition: Expression | None, scope: Scope) -> RowWindow:
    place, most = scope.place(clause), scope.binding.limits.window_rows_max
    rows = int(clause.this)
    if rows < 1:
        raise place.refuse(SyntaxRefused, "a window has at least one row", hint="write [ROWS 1]")
    if rows > most:
        raise place.exceeded("window_rows_max", most, rows, hint="write [UNBOUNDED]")
    keys = bind_keys(clause.args.get("keys") or (), scope)
    return RowWindow(rows, keys, None if condition is None else rewrite(condition))


def bind_keys(written: Sequence[exp.Expr], scope: Scope) -> tuple[Expression, ...]:
    """The keys of a PARTITION BY, each once."""
    return tuple(dict.fromkeys(rewrite(bind_scalar(key, scope)) for key in written))


def bind_duration(node: exp.Expr, scope: Scope, what: str) -> int:
    """Milliseconds of a time of at least 1 ms within the limit; ``what``: as in "SLIDE is"."""
    ms, most_ms = int(node.this), scope.binding.limits.window_ms_max
    if ms < 1:
        raise scope.place(node).refuse(
            SyntaxRefused, f"{what} at least one millisecond", hint="write a longer time"
        )
    if ms > most_ms:
        raise scope.place(node).exceeded("window_ms_max", most_ms, ms, hint="write a shorter time")
    return ms


def _begin_end(ends: exp.Expr, scope: Scope) -> TimeWindow:
    begin = _instant(ends.args["begin"], scope)
    end = _instant(ends.args["end"], scope)
    if begin.relative == end.relative and begin.ms > end.ms:
        raise scope.place(ends).refuse(
            SyntaxRefused, "this window ends before it begins", hint="exchange BEGIN and END"
        )
    return TimeWindow(begin, end)


def _instant(node: exp.Expr, scope: Scope) -> Instant:
    place, most_ms = scope.place(node), scope.binding.limits.window_ms_max
    if isinstance(node, nodes.NowOffset):
        ms = int(node.this)
        if ms > 0:
            raise place.refuse(
                SyntaxRefused, "a window cannot reach past NOW", hint="write NOW, or NOW - 10 MINUTES"
            )
        if -ms > most_ms:
            raise place.exceeded("window_ms_max", most_ms, -ms, hint="write [UNBOUNDED]")
        return Instant(relative=True, ms=ms)
    written = str(node.this)
    if node.args.get("is_string"):
        parsed = parse_timestamp(written)
        if parsed is None:
            raise place.refuse(
                TypeMismatch,
                f"'{shown(written)}' is not a TIMESTAMP",
                hint="write TIMESTAMP '2024-01-31 12:00:00', in UTC",
            )
        return Instant(relative=False, ms=parsed)
    digits = written.removeprefix("-")
    ms = int(written) if digits.isdigit() and len(digits) <= 18 else TIMESTAMP_MS_MAX + 1
    if not TIMESTAMP_MS_MIN <= ms <= TIMESTAMP_MS_MAX:
        raise place.refuse(
            TypeMismatch,
            f"{shown(written)} is not an instant",
            hint="write whole milliseconds since 1970, or TIMESTAMP '2024-01-31 12:00:00'",
        )
    return Instant(relative=False, ms=ms)
