"""Operators between two expressions: their tokens, how tightly they bind, and those of other systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.model.expressions import CompareOp

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
