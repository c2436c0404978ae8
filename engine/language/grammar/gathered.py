"""Aggregates that are functions of what ARRAY_AGG gathers:

JSON_AGG(x ORDER BY y)     TO_JSON(ARRAY_AGG(x ORDER BY y))
MAP_AGG(k, x)              MAP_FROM_ENTRIES(ARRAY_AGG(STRUCT(k AS key, x AS value)))
JSON_OBJECT_AGG(k, x)      TO_JSON of that, its keys as STRING
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


def gathered(cursor: Cursor, name: str, token: Token, call: exp.Expr) -> exp.Expr:
    """The function of what ARRAY_AGG gathers. call: that, over a window too."""
    if name not in LISTS:
        call = cursor.node(nodes.Call(name="MAP_FROM_ENTRIES", expressions=[call]), token, call)
    if name != "MAP_AGG":
        call = cursor.node(nodes.Call(name="TO_JSON", expressions=[call]), token, call)
    call.meta["called"] = name.lower()
    return call
