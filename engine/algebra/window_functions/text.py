"""How window functions are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import (
    DEFAULT_FRAME,
    Distance,
    Frame,
    WindowFunctionCall,
    WindowFunctions,
)
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.column_names import another
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import quoted, render_call, render_expression, render_name, render_sort_key
from engine.language.sql_text import Name, arguments_sql, call_sql, expression_sql, sort_key_sql
from engine.model.types import Kind

_DAY_MS = 86_400_000


def render_stage(stage: WindowFunctions) -> list[str]:
    of = f" of each {', '.join(render_expression(key) for key in stage.keys)}" if stage.keys else ""
    by = f" by {', '.join(render_sort_key(key) for key in stage.order)}" if stage.order else ""
    return [f"window functions{of}{by}", *(f"  {_rendered(call, stage.order)}" for call in stage.calls)]


def operator_words(stage: WindowFunctions, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    first = lines[0].removeprefix("window functions").lstrip()
    return "window functions", tuple(line for line in (first, *lines[1:]) if line)


def keyword(stage: WindowFunctions) -> str:
    return "OVER"


def why_not_preferred(stage: WindowFunctions) -> str:
    return DECIDED_BY_OTHERS


def plan_node(
    stage: WindowFunctions, below: str, columns: list[str], writer: PlanWriter
) -> tuple[str, list[str]]:
    named, names = namer(columns), list(columns)
    calls, frames = {}, {}
    for call in stage.calls:
        name = another(call.name, names)
        names.append(name)
        calls[name] = _call_sql(call, named)
        if call.frame != DEFAULT_FRAME:
            frames[name] = _frame_sql(call.frame, stage.order)
    node: dict[str, Any] = {"op": "window_functions", "input": below}
    if stage.keys:
        node["partition"] = [expression_sql(key, named) for key in stage.keys]
    if stage.order:
        node["order"] = [sort_key_sql(key, named) for key in stage.order]
    node["calls"] = calls
    if frames:
        node["frames"] = frames
    return writer.add("window_functions", node), names


def _rendered(call: WindowFunctionCall, order: Sequence[SortKey]) -> str:
    frame = "" if call.frame == DEFAULT_FRAME else f" {_frame_sql(call.frame, order)}"
    if call.aggregate is not None:
        return render_call(call.aggregate) + frame
    inside = ", ".join(render_expression(argument) for argument in call.arguments)
    return f"{render_name(call.name)} {call.type} = {call.function}({inside}){_nulls(call)}{frame}"


def _call_sql(call: WindowFunctionCall, named: Name) -> str:
    if call.aggregate is not None:
        return call_sql(call.aggregate, named)
    return f"{call.function}({arguments_sql(call.arguments, named)}){_nulls(call)}"


def _nulls(call: WindowFunctionCall) -> str:
    return " IGNORE NULLS" if call.ignore_nulls else ""


def _frame_sql(frame: Frame, order: Sequence[SortKey]) -> str:
    key = order[0] if frame.unit == "range" and order else None
    start, end = _bound_sql(frame.start, "PRECEDING", key), _bound_sql(frame.end, "FOLLOWING", key)
    exclude = "" if frame.exclude == "no others" else f" EXCLUDE {frame.exclude.upper()}"
    return f"{frame.unit.upper()} BETWEEN {start} AND {end}{exclude}"


def _bound_sql(distance: Distance | None, side: str, key: SortKey | None) -> str:
    if distance is None:
        return f"UNBOUNDED {side}"
    if distance == 0:
        return "CURRENT ROW"
    size: Distance = -distance if distance < 0 else distance
    kind = None if key is None else key.expression.type.kind
    if kind is Kind.TIMESTAMP or kind is Kind.DATE:
        ms = int(size) * (_DAY_MS if kind is Kind.DATE else 1)
        text = f"INTERVAL {quoted(str(ms))} MILLISECOND"
    else:
        text = f"{size:f}" if not isinstance(size, int | float) else repr(size)
    return f"{text} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"
