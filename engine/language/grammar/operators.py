"""Operators between two expressions: their tokens, how tightly they bind, and those of other systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.model.expressions import CompareOp
from tureen.errors import NotSupported

COMPARISONS: dict[TokenType, type[exp.Expr]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
}


def _call(name: str) -> Callable[..., Any]:
    """What makes the node of an operator that is a row of the functions' table."""
    return lambda this, expression: nodes.Call(name=name, expressions=[this, expression])


COMPARE_OPS: dict[type[exp.Expr], CompareOp] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
Operator = tuple[int, Callable[..., Any]]
"""How tightly it binds, and what makes its node of ``this`` and ``expression``."""
_OPERATORS: dict[TokenType, Operator] = {
    TokenType.DPIPE: (1, exp.DPipe),
    TokenType.AMP: (1, _call("&")),
    TokenType.PIPE: (1, _call("|")),
    TokenType.HASH: (1, _call("#")),
    TokenType.PLUS: (2, exp.Add),
    TokenType.DASH: (2, exp.Sub),
    TokenType.STAR: (3, exp.Mul),
    TokenType.SLASH: (3, exp.Div),
    TokenType.MOD: (3, exp.Mod),
    TokenType.CARET: (4, _call("POWER")),
    TokenType.ARROW: (5, _call("->")),
    TokenType.DARROW: (5, _call("->>")),
    TokenType.HASH_ARROW: (5, _call("#>")),
    TokenType.DHASH_ARROW: (5, _call("#>>")),
}
_SHIFTS: dict[TokenType, Operator] = {
    TokenType.LT: (1, _call("<<")),
    TokenType.GT: (1, _call(">>")),
}
"""The operators that are two such tokens side by side."""
FOREIGN: dict[TokenType, tuple[str, str]] = {
    TokenType.ADJACENT: ("==", "write ="),
    TokenType.TILDE: ("~", "write REGEXP_LIKE(s, pattern), or LIKE or ILIKE"),
    TokenType.NOT: ("!", "write NOT, or <> for 'differs'"),
}

WORDS = {
    "DIV": "write a / b, which is whole for whole numbers",
    "XOR": "write a # b, or a <> b for conditions",
    "CONTAINS": "write x = ANY(a) for an element of an array, CONTAINS(s, 'part') for a part of a text",
}
"""Operators of other systems that are words -> what to write instead."""
_CHARACTERS = frozenset("@<>#&?|")
_OF_CHARACTERS = {
    "@>": "write x = ANY(a) for an element of an array, j ->> 'name' = 'text' for a member of JSON",
    "<@": "write x = ANY(a) for an element of an array, j ->> 'name' = 'text' for a member of JSON",
    "&&": "write AND between conditions, x = ANY(a) for elements of an array",
    "?|": "write j -> 'name' IS NOT NULL for each name, with OR",
    "?&": "write j -> 'name' IS NOT NULL for each name, with AND",
}
"""Those of several characters -> what to write instead."""


def refuse_foreign(cursor: Cursor) -> None:
    """Raise NotSupported at an operator of other systems, of whose characters the next token is one."""
    sql, start, end = cursor.text.sql, cursor.token.start, cursor.token.start
    while start > 0 and sql[start - 1] in _CHARACTERS:
        start -= 1
    while end < len(sql) and sql[end] in _CHARACTERS:
        end += 1
    written = sql[start:end]
    hint = _OF_CHARACTERS.get(written)
    if written == "?" and cursor.peek().token_type is TokenType.STRING:
        hint = "write j -> 'name' IS NOT NULL"
    if hint is not None:
        raise cursor.text.at(start).refuse(
            NotSupported, f"the operator {written} is not supported", hint=hint
        )
    if cursor.at(TokenType.L_BRACE):
        raise cursor.not_supported(
            "{...} is not supported", "write STRUCT(1 AS a), or JSON_OBJECT('a', 1) for JSON"
        )


def take_operator(cursor: Cursor, tightness: int) -> Operator | None:
    """Step over the operator that comes next; None where none does that binds so tightly."""
    token, ahead = cursor.token, cursor.peek()
    kind = token.token_type
    shift = _SHIFTS.get(kind) if ahead.token_type is kind and ahead.start == token.end + 1 else None
    found = shift or _OPERATORS.get(kind)
    if found is None or found[0] < tightness:
        return None
    cursor.advance()
    if shift:
        cursor.advance()
    return found


def balanced(cursor: Cursor, make: Callable[..., Any], operands: list[exp.Expr]) -> exp.Expr:
    """Operands joined by an operator that is associative, as a tree that is no higher than it has to be."""
    while len(operands) > 1:
        pairs = [
            cursor.node(make(this=left, expression=right), left, left, right)
            for left, right in zip(operands[::2], operands[1::2], strict=False)
        ]
        operands = [*pairs, *operands[2 * len(pairs) :]]
    return operands[0]
