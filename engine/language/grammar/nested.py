"""Subscripts, members, ``ARRAY[...]``, ``MAP[...]``, ``X'...'``, and ANY and ALL of an ARRAY."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from tureen.errors import SyntaxRefused

Parse = Callable[[Cursor], exp.Expr]


def parse_member(cursor: Cursor, operand: exp.Expr) -> exp.Expr:
    """``operand.name``; the dot is next."""
    cursor.advance()
    name = cursor.field("a member after the dot")
    literal = cursor.node(exp.Literal(this=str(name.this), is_string=True), name)
    return cursor.node(nodes.Call(name=".", expressions=[operand, literal]), operand, operand, literal)


def parse_subscript(cursor: Cursor, operand: exp.Expr, expression: Parse) -> exp.Expr:
    """``operand[n]``, ``operand[n:m]``; the bracket is next."""
    token = cursor.advance()
    with cursor.nested():
        first = _bound(cursor, token, expression)
        is_cut = cursor.take(TokenType.COLON)
        parts = [operand, first]
        if is_cut:
            parts.append(_bound(cursor, token, expression))
        elif isinstance(first, exp.Null):
            raise cursor.expected("an expression", "write a[1], a[1:2] or m['key']")
        cursor.expect(TokenType.R_BRACKET, "]", "write a[1], a[1:2] or m['key']")
    return cursor.node(nodes.Call(name="[:]" if is_cut else "[]", expressions=parts), operand, *parts)


def _bound(cursor: Cursor, token: Token, expression: Parse) -> exp.Expr:
    """What stands on a side of ``:`` in a subscript; NULL where nothing does."""
    if cursor.at(TokenType.COLON) or cursor.at(TokenType.R_BRACKET):
        return cursor.node(exp.Null(), token)
    return expression(cursor)


def parse_group_of_match(cursor: Cursor, operand: exp.Expr, number: Parse) -> exp.Expr:
    """``(REGEXP_MATCH(s, pattern))[2]`` is REGEXP_EXTRACT(s, pattern, 2); other subscripts are left alone."""
    call = operand.unnest()
    if not isinstance(call, nodes.Call) or call.args["name"] != "REGEXP_MATCH" or len(call.expressions) != 2:
        return operand
    cursor.advance()
    if not cursor.at(TokenType.NUMBER):
        raise cursor.expected("the number of a group", "write (REGEXP_MATCH(s, pattern))[1]")
    group = number(cursor)
    cursor.expect(TokenType.R_BRACKET, "]", "write (REGEXP_MATCH(s, pattern))[1]")
    arguments = [*call.expressions, group]
    return cursor.node(nodes.Call(name="REGEXP_EXTRACT", expressions=arguments), operand, *arguments)


def parse_bracketed(cursor: Cursor, token: Token, expression: Parse) -> exp.Expr:
    """``ARRAY[x, ...]``, ``MAP['key', x, ...]``; the word is next."""
    cursor.advance()
    cursor.advance()
    values: list[exp.Expr] = []
    with cursor.nested():
        if not cursor.at(TokenType.R_BRACKET):
            values = cursor.listed(lambda: expression(cursor))
        cursor.expect(TokenType.R_BRACKET, "] or a comma")
    return cursor.node(nodes.Call(name=token.text.upper(), expressions=values), token, *values)


def parse_bytes(cursor: Cursor, token: Token, string: Parse) -> exp.Expr:
    """``X'6869'``; the letter is next."""
    cursor.advance()
    digits = string(cursor)
    if not re.fullmatch("(?:[0-9a-fA-F]{2})*", str(digits.this)):
        raise cursor.text.of_node(digits).refuse(
            SyntaxRefused, "BYTES are pairs of hexadecimal digits", hint="write X'6869'"
        )
    form = cursor.node(exp.Literal(this="hex", is_string=True), token)
    return cursor.node(nodes.Call(name="DECODE", expressions=[digits, form]), token, digits, form)


def parse_any_element(
    cursor: Cursor, left: exp.Expr, comparison: type[exp.Expr], expression: Parse
) -> exp.Expr:
    """``left = ANY (array)``, ``left <> ALL (array)``; the quantifier is next."""
    token = cursor.advance()
    is_all = token.text.upper() == "ALL"
    cursor.advance()
    with cursor.nested():
        array = expression(cursor)
        cursor.expect(TokenType.R_PAREN, ")")
    if comparison is not (exp.NEQ if is_all else exp.EQ):
        raise cursor.not_supported(
            f"this comparison with {token.text.upper()} of an ARRAY is not supported",
            "write x = ANY(a), x <> ALL(a), or a subquery in the place of the ARRAY",
            token,
        )
    test = cursor.node(nodes.Call(name="ANY_EQUAL", expressions=[array, left]), left, array, left)
    return cursor.node(exp.Not(this=test), left, test) if is_all else test
