"""Rows of values, ``(a, b)``: compared with another, and before IN.

``ROW(a, b)`` is the same. They are read as comparisons of their values: ``(a, b) = (c, d)`` as
``a = c AND b = d``, ``(a, b) < (c, d)`` as ``a < c OR a = c AND b < d``, ``(a, b) IN ((1, 2), (3, 4))`` as
an OR. Before IN (SELECT ...) they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.operators import COMPARISONS, balanced
from engine.language.grammar.subqueries import starts_query
from tureen.errors import SyntaxRefused

Parse = Callable[[Cursor], exp.Expr]
_USAGE = "write (a, b) = (1, 2), or (a, b) IN ((1, 2), (3, 4))"
_STRICT: dict[type[exp.Expr], type[exp.Expr]] = {exp.LTE: exp.LT, exp.GTE: exp.GT}


def parse_row_value(cursor: Cursor, token: Token, first: exp.Expr, expression: Parse) -> exp.Expr:
    """``(a, b)`` from its first comma on. Raises NotSupported where it is neither compared nor before IN."""
    values = [first]
    while cursor.take(TokenType.COMMA):
        values.append(expression(cursor))
    cursor.expect(TokenType.R_PAREN, ") or a comma")
    word = cursor.word_ahead() if cursor.word == "NOT" else cursor.word
    if word != "IN" and cursor.token.token_type not in COMPARISONS:
        raise cursor.not_supported(
            "a row of values is allowed only in a comparison with another, and before IN", _USAGE, token
        )
    return cursor.node(nodes.RowValue(expressions=values), token, *values)


def parse_row_call(cursor: Cursor, expression: Parse) -> exp.Expr:
    """``ROW(a, b)``. Raises NotSupported where it is neither compared nor before IN."""
    token = cursor.advance()
    cursor.expect(TokenType.L_PAREN, "( and a row of values", _USAGE)
    with cursor.nested():
        first = expression(cursor)
        if not cursor.at(TokenType.COMMA):
            raise cursor.not_supported("a row of one value is not supported", "write the value", token)
        return parse_row_value(cursor, token, first, expression)


def compare_rows(cursor: Cursor, left: nodes.RowValue, make: type[exp.Expr], expression: Parse) -> exp.Expr:
    """``left = (c, d)``; the right row is next."""
    right = _row(cursor, len(left.expressions), expression)
    if make in (exp.EQ, exp.NEQ):
        same = _equal(cursor, left, right)
        return same if make is exp.EQ else cursor.node(exp.Not(this=same), left, same)
    pairs = list(zip(left.expressions, right, strict=True))
    *before, last = pairs
    found = _compared(cursor, make, *last)
    for one, other in reversed(before):
        equal = _both(cursor, exp.And, _compared(cursor, exp.EQ, one, other), found)
        strict = _compared(cursor, _STRICT.get(make, make), one, other)
        found = _both(cursor, exp.Or, strict, equal)
    return cursor.node(exp.Paren(this=found), left, found)


def row_among(cursor: Cursor, left: nodes.RowValue, expression: Parse) -> exp.Expr:
    """``left IN ((1, 2), (3, 4))``; the first row is next."""
    width = len(left.expressions)
    with cursor.nested():
        rows = cursor.listed(lambda: _row(cursor, width, expression))
        cursor.expect(TokenType.R_PAREN, ") or a comma")
    found = [_equal(cursor, left, row) for row in rows]
    return balanced(cursor, exp.Or, found)


def _row(cursor: Cursor, width: int, expression: Parse) -> list[exp.Expr]:
    place = cursor.place
    if cursor.word == "ROW":
        cursor.advance()
    cursor.expect(TokenType.L_PAREN, "( and a row of values", _USAGE)
    if starts_query(cursor):
        raise cursor.not_supported(
            "a row of values is not compared with a subquery by an operator", "write (a, b) IN (SELECT ...)"
        )
    with cursor.nested():
        values = cursor.listed(lambda: expression(cursor))
        cursor.expect(TokenType.R_PAREN, ") or a comma")
    if len(values) != width:
        raise place.refuse(
            SyntaxRefused, f"this row has {len(values)} values, the one before {width}", hint=_USAGE
        )
    return values


def _equal(cursor: Cursor, left: nodes.RowValue, right: Sequence[exp.Expr]) -> exp.Expr:
    pairs = zip(left.expressions, right, strict=True)
    found = balanced(cursor, exp.And, [_compared(cursor, exp.EQ, one, other) for one, other in pairs])
    return cursor.node(exp.Paren(this=found), left, found)


def _compared(cursor: Cursor, make: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> exp.Expr:
    one, other = one.copy(), other.copy()
    return cursor.node(make(this=one, expression=other), one, one, other)


def _both(cursor: Cursor, make: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return cursor.node(make(this=one, expression=other), one, one, other)
