"""Function calls: the catalogue's entry, its types, and the arguments in those types."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Protocol

from sqlglot import exp

from engine.language.aggregates import (
    AGGREGATE_ALIASES,
    AGGREGATES,
    AGGREGATES_REFUSED,
    aggregate_named,
)
from engine.language.bind.scope import Scope
from engine.language.grammar.words import FUNCTIONS_REFUSED
from engine.language.literals import instant_literal, typed
from engine.language.places import Place, shown
from engine.language.signatures import Types, Unfit
from engine.language.window_functions import WINDOW_FUNCTIONS
from engine.model import expressions as bound
from engine.model.expressions import Expression, Literal
from engine.model.types import STRING, Kind, Type
from tureen.errors import NotSupported, QueryError, TypeMismatch

_CLOSE = 0.76
"""How like a function's name must be to be offered: most names of three letters are like some other."""

GROUPING_MARKS = ("GROUPING", "GROUPING_ID")
"""Calls that say which keys a row's grouping set is without."""

Bind = Callable[[exp.Expr, Scope], Expression]


def coerce(expression: Expression, target: Type) -> Expression:
    """The expression as ``target``: itself, a literal converted, or a cast."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        literal = typed(expression, target)
        if literal.type == target:
            return literal
    return bound.Cast(expression, target)


class Typed(Protocol):
    """What knows the types of a call: a scalar function or an aggregate."""

    @property
    def usage(self) -> str: ...

    def types(self, arguments: Sequence[Expression]) -> Types: ...


def bind_call(node: exp.Expr, scope: Scope, bind: Bind) -> Expression:
    """A function or an aggregate. Raises NotSupported, TypeMismatch."""
    name = str(node.args["name"])
    aggregate = aggregate_named(name)
    if aggregate is not None:
        if scope.grouping is None:
            raise _misplaced(name, node, scope)
        return scope.grouping.call(node, aggregate)
    place = scope.place(node)
    if name in GROUPING_MARKS:
        if scope.grouping is None:
            raise place.refuse(
                TypeMismatch, f"{name} needs GROUP BY", hint="write it in SELECT, HAVING or ORDER BY of one"
            )
        return scope.grouping.mark(node)
    function = scope.binding.functions.named(name)
    if function is None:
        raise _unknown(name, scope, place)
    if node.args.get("star"):
        raise place.refuse(
            TypeMismatch, f"{name}(*) is not supported: only COUNT takes *", hint=f"write {function.usage}"
        )
    for word, clause in (("distinct", "DISTINCT"), ("filter", "FILTER")):
        if node.args.get(word):
            raise place.refuse(
                TypeMismatch,
                f"{clause} belongs to an aggregate, {name} is a function of one row",
                hint="write CASE WHEN ... THEN ... END" if word == "filter" else "write SELECT DISTINCT",
            )
    count = len(node.args.get("expressions") or ())
    if not function.arity_min <= count <= function.arity_max:
        raise place.refuse(
            TypeMismatch,
            f"{name} does not take {count} argument{'' if count == 1 else 's'}",
            hint=f"write {function.usage}",
        )
    arguments, result = bind_arguments(function, node, scope, bind)
    return function.build(arguments, result)


def bind_arguments(
    function: Typed, node: exp.Expr, scope: Scope, bind: Bind
) -> tuple[tuple[Expression, ...], Type]:
    """The arguments in the types that the function takes, and the type that it gives. Raises TypeMismatch."""
    written = node.meta.get("written")
    name = written or str(node.args["name"])
    argument_nodes: list[exp.Expr] = node.args.get("expressions") or []
    arguments = [bind(argument, scope) for argument in argument_nodes]
    try:
        targets, result = function.types(arguments)
    except Unfit as unfit:
        where = argument_nodes[unfit.place] if unfit.place < len(argument_nodes) else node
        raise scope.place(where).refuse(
            TypeMismatch,
            f"{name}: {unfit.message}" if name[0].isalpha() else unfit.message,
            hint=unfit.hint or f"write {f't {written} zone' if written else function.usage}",
        ) from None
    coerced = tuple(
        _argument(argument, target, argument_node, scope)
        for argument, target, argument_node in zip(arguments, targets, argument_nodes, strict=True)
    )
    return coerced, result


def _misplaced(name: str, node: exp.Expr, scope: Scope) -> QueryError:
    """The refusal of an aggregate where none may stand."""
    if scope.clause == "an aggregate":
        return scope.place(node).refuse(
            TypeMismatch,
            f"{name} is inside another aggregate",
            hint="aggregate in a subquery first: SELECT MAX(n) FROM (SELECT k, COUNT(*) AS n ... GROUP BY k)",
        )
    hint = {
        "WITH PREFERENCE": "write SUMMARY.Estimate.Count(column): priorities are known before rows are read",
        "WHERE": f"WHERE looks at single rows; write HAVING {name}(...) ...",
        "GROUP BY": "group in a subquery first: FROM (SELECT ..., COUNT(*) AS n ... GROUP BY ...)",
    }.get(scope.clause, "aggregates are allowed in SELECT, HAVING and ORDER BY")
    return scope.place(node).refuse(
        TypeMismatch, f"the aggregate {name} is not allowed in {scope.clause}", hint=hint
    )


def _unknown(name: str, scope: Scope, place: Place) -> QueryError:
    if name in WINDOW_FUNCTIONS:
        return place.refuse(
            NotSupported,
            f"{name} needs OVER",
            hint=f"write {WINDOW_FUNCTIONS[name].shortest} OVER (PARTITION BY x ORDER BY y)",
        )
    instead = AGGREGATES_REFUSED.get(name) or FUNCTIONS_REFUSED.get(name)
    if instead is not None:
        return place.refuse(NotSupported, f"{name} is not supported", hint=instead)
    functions = scope.binding.functions.names
    names = {known.lower(): known for known in (*functions, *AGGREGATES, *AGGREGATE_ALIASES)}
    near = difflib.get_close_matches(name.lower()[:200], names, n=3, cutoff=_CLOSE)
    close = [names[known] for known in near]
    lists = "SHOW FUNCTIONS lists those there are"
    hint = f"did you mean {' or '.join(close)}? {lists}" if close else lists
    return place.refuse(NotSupported, f"there is no function {shown(name)}", hint=hint)


def _argument(argument: Expression, target: Type, node: exp.Expr, scope: Scope) -> Expression:
    if (
        isinstance(argument, Literal)
        and argument.type == STRING
        and target.kind in (Kind.DATE, Kind.TIMESTAMP)
    ):
        return coerce(instant_literal(argument, target, scope.place(node)), target)
    return coerce(argument, target)
