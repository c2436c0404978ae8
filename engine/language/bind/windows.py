"""Window clauses to windows."""

from __future__ import annotations

from sqlglot import exp

from engine.language.grammar import nodes
from engine.language.instants import parse_timestamp
from engine.language.places import Text, shown
from engine.limits import Limits
from engine.model.types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from engine.windows.clauses import UNBOUNDED, Instant, RowWindow, TimeWindow, Window, range_window
from tureen.errors import SyntaxRefused, TypeMismatch


def bind_window(clause: exp.Expr | None, ends: exp.Expr | None, text: Text, limits: Limits) -> Window:
    """The window of a query; without a clause [UNBOUNDED]. Raises SyntaxRefused, TypeMismatch,
    LimitExceeded.
    """
    if ends is not None:
        if clause is not None:
            raise text.of_node(ends).refuse(
                SyntaxRefused,
                "a query has one window",
                hint="write the brackets after the stream, or BEGIN ... END ..., not both",
            )
        return _begin_end(ends, text, limits)
    if clause is None or isinstance(clause, nodes.UnboundedClause):
        return UNBOUNDED
    place = text.of_node(clause)
    if isinstance(clause, nodes.RowsClause):
        rows = int(clause.this)
        if rows < 1:
            raise place.refuse(SyntaxRefused, "a window holds at least one row", hint="write [ROWS 1]")
        if rows > limits.window_rows_max:
            raise place.exceeded("window_rows_max", limits.window_rows_max, rows, hint="write [UNBOUNDED]")
        return RowWindow(rows)
    width_ms = int(clause.this) if isinstance(clause, nodes.RangeClause) else 0
    if width_ms > limits.window_ms_max:
        raise place.exceeded("window_ms_max", limits.window_ms_max, width_ms, hint="write [UNBOUNDED]")
    return range_window(width_ms)


def _begin_end(ends: exp.Expr, text: Text, limits: Limits) -> TimeWindow:
    begin = _instant(ends.args["begin"], text, limits)
    end = _instant(ends.args["end"], text, limits)
    if begin.relative == end.relative and begin.ms > end.ms:
        raise text.of_node(ends).refuse(
            SyntaxRefused, "this window ends before it begins", hint="exchange BEGIN and END"
        )
    return TimeWindow(begin, end)


def _instant(node: exp.Expr, text: Text, limits: Limits) -> Instant:
    place = text.of_node(node)
    if isinstance(node, nodes.NowOffset):
        ms = int(node.this)
        if ms > 0:
            raise place.refuse(
                SyntaxRefused, "a window cannot reach past NOW", hint="write NOW, or NOW - 10 MINUTES"
            )
        if -ms > limits.window_ms_max:
            raise place.exceeded("window_ms_max", limits.window_ms_max, -ms, hint="write [UNBOUNDED]")
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
