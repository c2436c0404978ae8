"""Function calls: the catalogue's entry, its types, and the arguments in those types."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from sqlglot import exp

from engine.language import expressions as bound
from engine.language.bind.literals import instant_literal, typed
from engine.language.bind.scope import Scope
from engine.language.expressions import Expression, Literal
from engine.language.functions import ALIASES, FUNCTIONS, function_named
from engine.language.grammar.words import AGGREGATES
from engine.language.places import shown
from engine.language.signatures import Unfit
from engine.model.types import STRING, Kind, Type
from tureen.errors import NotSupported, TypeMismatch


def coerce(expression: Expression, target: Type) -> Expression:
    """The expression as ``target``: itself, a literal converted, or a cast."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        literal = typed(expression, target)
        if literal.type == target:
            return literal
    return bound.Cast(expression, target)


def bind_call(node: exp.Expr, scope: Scope, bind: Callable[[exp.Expr, Scope], Expression]) -> Expression:
    """A scalar function. Raises NotSupported, TypeMismatch."""
    name = str(node.args["name"])
    place = scope.place(node)
    if name in AGGREGATES:
        if name == "COUNT":
            raise place.refuse(
                NotSupported,
                "COUNT is served as the only column: SELECT COUNT(*)",
                hint="write SELECT COUNT(*) FROM ... alone; to count values add WHERE x IS NOT NULL",
            )
        raise place.refuse(
            NotSupported,
            f"the aggregate {name} is not served",
            hint="select the rows; COUNT(*) alone is served",
        )
    function = function_named(name)
    if function is None:
        names = {known.lower(): known for known in (*FUNCTIONS, *ALIASES)}
        close = [names[known] for known in difflib.get_close_matches(name.lower(), names, n=3)]
        hint = f"did you mean {' or '.join(close)}?" if close else "see the table of functions"
        raise place.refuse(NotSupported, f"there is no function {shown(name)}", hint=hint)
    if node.args.get("star"):
        raise place.refuse(TypeMismatch, f"{name}(*) means nothing", hint=f"write {function.usage}")
    argument_nodes = node.args.get("expressions") or []
    if not function.arity_min <= len(argument_nodes) <= function.arity_max:
        raise place.refuse(
            TypeMismatch,
            f"{name} does not take {len(argument_nodes)} arguments",
            hint=f"write {function.usage}",
        )
    arguments = [bind(argument, scope) for argument in argument_nodes]
    try:
        targets, result = function.types(arguments)
    except Unfit as unfit:
        where = argument_nodes[unfit.place] if unfit.place < len(argument_nodes) else node
        raise scope.place(where).refuse(
            TypeMismatch, f"{name}: {unfit.message}", hint=unfit.hint or f"write {function.usage}"
        ) from None
    coerced = tuple(
        _argument(argument, target, argument_node, scope)
        for argument, target, argument_node in zip(arguments, targets, argument_nodes, strict=True)
    )
    return function.build(coerced, result)


def _argument(argument: Expression, target: Type, node: exp.Expr, scope: Scope) -> Expression:
    if (
        isinstance(argument, Literal)
        and argument.type is STRING
        and target.kind in (Kind.DATE, Kind.TIMESTAMP)
    ):
        return coerce(instant_literal(str(argument.value), target, scope.place(node)), target)
    return coerce(argument, target)
