"""Table functions to assignments of rows to windows."""

from __future__ import annotations

from sqlglot import exp

from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import Scope
from engine.language.bind.windows import bind_duration, bind_keys
from engine.model.expressions import Column, Expression
from engine.windows.assignment import WINDOW_COLUMNS, WINDOWS_A_ROW_MAX, Assignment, Hop, Session
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch


def bind_table_function(node: exp.Expr, scope: Scope) -> Assignment:
    """``scope``: of the stream that the function is about.

    Raises SyntaxRefused, TypeMismatch, NotSupported, LimitExceeded, and what binding an expression raises.
    """
    name = str(node.args["name"])
    for taken in WINDOW_COLUMNS:
        if scope.names.source.schema.index(taken) is not None:
            raise scope.place(node).refuse(
                NotSupported,
                f"{name} gives a column {taken}, and {scope.names.source.name} has one already",
                hint=f"declare the stream with another name for its column {taken}",
            )
    keys = list(node.args.get("keys") or ())
    column = node.args.get("column")
    if column is not None:
        _check_time(exp.Column(this=column), column, scope)
    elif len(keys) > 1 and _is_time(keys[-1], scope):  # SESSION(s PARTITION BY k, ts, gap)
        keys.pop()
    if name == "SESSION":
        (gap,) = node.args["durations"]
        return Session(bind_duration(gap, scope, "the gap of a session is"), bind_keys(keys, scope))
    return _hop(name, node, scope)


def _hop(name: str, node: exp.Expr, scope: Scope) -> Hop:
    durations: list[exp.Expr] = node.args["durations"]
    what = "the size of a window is"
    slide_ms = bind_duration(durations[0], scope, what if name == "TUMBLE" else "the slide is")
    rest, size_ms = durations[1:], slide_ms
    if name == "HOP":
        size_ms = bind_duration(rest.pop(0), scope, what)
        if -(-size_ms // slide_ms) > WINDOWS_A_ROW_MAX:
            raise scope.place(node).exceeded(
                "windows_a_row_max",
                WINDOWS_A_ROW_MAX,
                -(-size_ms // slide_ms),
                hint="HOP takes the slide first, then the size; choose a longer slide",
            )
    offset_ms = int(rest[0].this) % slide_ms if rest else 0
    return Hop(size_ms, slide_ms, offset_ms)


def _is_time(key: exp.Expr, scope: Scope) -> bool:
    return isinstance(key, exp.Column) and _is_time_column(bind_scalar(key, scope), scope)


def _is_time_column(bound: Expression, scope: Scope) -> bool:
    source = scope.names.source
    time = source.timestamp_column
    return time is not None and isinstance(bound, Column) and bound.index == source.schema.index(time)


def _check_time(node: exp.Expr, written: exp.Expr, scope: Scope) -> None:
    """Windows follow the stream's own time: naming another column is a mistake."""
    node.meta.update(written.meta)
    if _is_time_column(bind_scalar(node, scope), scope):
        return
    time = scope.names.source.timestamp_column
    if time is None:
        raise scope.place(written).refuse(
            SyntaxRefused,
            f"{scope.names.source.name} runs in arrival time and has no time column",
            hint="leave the column out",
        )
    raise scope.place(written).refuse(
        TypeMismatch,
        f"{written.this} is not the time of {scope.names.source.name}",
        hint=f"its windows follow {time}: name that column, or leave it out",
    )
