"""Aggregates that are functions of what ARRAY_AGG gathers:

JSON_AGG(x ORDER BY y)     TO_JSON(ARRAY_AGG(x ORDER BY y))
MAP_AGG(k, x)              MAP_FROM_ENTRIES(ARRAY_AGG(STRUCT(k AS key, x AS value)))
JSON_OBJECT_AGG(k, x)      TO_JSON of that, its keys as STRING
ARRAY_AGG(DISTINCT x)      ARRAY_DISTINCT(ARRAY_AGG(x ORDER BY x)); JSON_AGG in the same way
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from tureen.errors import TypeMismatch

LISTS = frozenset(["JSON_AGG", "JSONB_AGG", "JSON_ARRAYAGG", "JSON_GROUP_ARRAY"])
OBJECTS = frozenset(["JSON_OBJECT_AGG", "JSONB_OBJECT_AGG", "JSON_OBJECTAGG", "JSON_GROUP_OBJECT"])
DISTINCT = frozenset(["ARRAY_AGG", "COLLECT_LIST", "LIST", *LISTS])
"""Those of which each value may be gathered once."""
GATHERED = dict.fromkeys(LISTS, 1) | dict.fromkeys((*OBJECTS, "MAP_AGG"), 2)
"""Names, and how many arguments they take."""


def gathered_arguments(
    cursor: Cursor, name: str, token: Token, arguments: Sequence[exp.Expr]
) -> list[exp.Expr]:
    """What ARRAY_AGG gathers for one of these. Raises TypeMismatch for another number of arguments."""
    if len(arguments) != GATHERED[name]:
        usage = f"{name}(x)" if GATHERED[name] == 1 else f"{name}(key, x)"
        raise cursor.text.of_token(token).refuse(
            TypeMismatch, f"{name} does not take {len(arguments)} arguments", hint=f"write {usage}"
        )
    if name in LISTS:
        return list(arguments)
    key, value = arguments
    target = cursor.node(nodes.TypeName(name="STRING", numbers=[]), token)
    key = cursor.node(exp.Cast(this=key, to=target), token, key)
    parts: list[exp.Expr] = []
    for member, part in (("key", key), ("value", value)):
        parts += [cursor.node(exp.Literal(this=member, is_string=True), token), part]
    return [cursor.node(nodes.Call(name="STRUCT", expressions=parts), token, *parts)]


def order_of_distinct(
    cursor: Cursor, token: Token, arguments: Sequence[exp.Expr], order: list[nodes.OrderItem]
) -> list[nodes.OrderItem]:
    """How values that are gathered once are ordered: by themselves. Raises NotSupported of another order."""
    if len(arguments) != 1:
        return order
    (value,) = arguments
    if not order:
        item = nodes.OrderItem(this=value.copy(), descending=False)
        return [cursor.node(item, token, value)]
    if len(order) > 1 or order[0].this != value:
        raise cursor.not_supported(
            "values that are gathered once have the order of themselves alone",
            "write ARRAY_AGG(DISTINCT x ORDER BY x DESC)",
            token,
        )
    return order


def once(cursor: Cursor, token: Token, call: exp.Expr) -> exp.Expr:
    """Each value that ARRAY_AGG gathers, once."""
    made = cursor.node(nodes.Call(name="ARRAY_DISTINCT", expressions=[call]), token, call)
    made.meta["called"] = "array_agg"
    return made


def gathered(cursor: Cursor, name: str, token: Token, call: exp.Expr) -> exp.Expr:
    """The function of what ARRAY_AGG gathers. call: that, over a window too."""
    if name not in LISTS:
        call = cursor.node(nodes.Call(name="MAP_FROM_ENTRIES", expressions=[call]), token, call)
    if name != "MAP_AGG":
        call = cursor.node(nodes.Call(name="TO_JSON", expressions=[call]), token, call)
    call.meta["called"] = name.lower()
    return call
