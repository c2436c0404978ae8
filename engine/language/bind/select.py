"""A query: its stream, window, condition and columns."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from engine.language.bind.scalar import bind_condition, bind_scalar
from engine.language.bind.scope import NODES_MAX, Scope
from engine.language.bind.windows import bind_window
from engine.language.expressions import Column
from engine.language.grammar import nodes
from engine.language.places import Text
from engine.language.query import Aggregate, AggregateCall, Output, Project, Query, Scan, Stage
from engine.language.rules import rewrite
from engine.limits import Limits
from engine.model.source import Stream
from engine.model.types import BIGINT


def bind_select(tree: exp.Expr, text: Text, catalogue: Mapping[str, Stream], limits: Limits) -> Query:
    """Raises QueryError and LimitExceeded with a place."""
    source = tree.args["source"]
    name = str(source.this.this)
    stream = catalogue.get(name)
    if stream is None:
        raise text.of_node(source.this).unknown_source(name, catalogue)
    alias = source.args.get("alias")
    scope = Scope(text, limits, stream, str(alias.this) if alias is not None else None)
    window = bind_window(source.args.get("window"), tree.args.get("ends"), text, limits)
    where = tree.args.get("where")
    predicate = None if where is None else bind_condition(where, scope)
    stage = _stage(tree.expressions, scope)
    parts = [] if predicate is None else [predicate]
    parts += [output.expression for output in stage.outputs] if isinstance(stage, Project) else []
    if scope.total(parts) > NODES_MAX:
        raise scope.place(tree).exceeded(
            "expression_nodes_max", NODES_MAX, hint="register several smaller queries"
        )
    if isinstance(stage, Project):
        stage = Project(tuple(Output(output.name, rewrite(output.expression)) for output in stage.outputs))
    scan = Scan(stream.name, window, None if predicate is None else rewrite(predicate))
    return Query(text.sql, scan, (stage,))


def _stage(projections: list[exp.Expr], scope: Scope) -> Stage:
    if len(projections) == 1:
        only = projections[0]
        call = only.this if isinstance(only, exp.Alias) else only
        if isinstance(call, nodes.Call) and call.args["name"] == "COUNT" and call.args.get("star"):
            name = str(only.args["alias"].this) if isinstance(only, exp.Alias) else "count"
            return Aggregate((), (AggregateCall(name, "COUNT", (), BIGINT),))
    outputs: list[Output] = []
    for place, projection in enumerate(projections):
        if isinstance(projection, exp.Star):
            outputs += _all_columns(scope)
        elif isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star):
            scope.check_qualifier(projection.args["table"])
            outputs += _all_columns(scope)
        elif isinstance(projection, exp.Alias):
            expression = bind_scalar(projection.this, scope)
            outputs.append(Output(str(projection.args["alias"].this), expression))
        else:
            expression = bind_scalar(projection, scope)
            outputs.append(Output(_derived_name(projection, place), expression))
    if len(outputs) > scope.limits.outputs_max:
        raise scope.place(projections[0]).exceeded("outputs_max", scope.limits.outputs_max, len(outputs))
    return Project(_unique(outputs))


def _all_columns(scope: Scope) -> list[Output]:
    return [Output(f.name, Column(place, f.name, f.type)) for place, f in enumerate(scope.stream.schema)]


def _derived_name(node: exp.Expr, place: int) -> str:
    """The column's name; a function's or cast column's name in lower case; else column and its number."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return str(node.this.this)
    if isinstance(node, nodes.Call):
        return str(node.args["name"]).lower()
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
        return str(node.this.this.this)
    if isinstance(node, exp.Case):
        return "case"
    return f"column_{place + 1}"


def _unique(outputs: list[Output]) -> tuple[Output, ...]:
    """Answers are tables whose columns have different names: a second ``a`` becomes ``a_2``."""
    taken = {output.name for output in outputs}
    seen: set[str] = set()
    result = []
    for output in outputs:
        name, count = output.name, 1
        while name in seen:
            count += 1
            candidate = f"{output.name}_{count}"
            if candidate not in taken:
                name = candidate
        seen.add(name)
        taken.add(name)
        result.append(Output(name, output.expression))
    return tuple(result)
