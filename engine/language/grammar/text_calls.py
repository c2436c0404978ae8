"""Functions of texts that have words between their arguments.

| written                                  | read as                                              |
|------------------------------------------|------------------------------------------------------|
| ``POSITION(part IN s)``                  | ``POSITION(part, s)``                                |
| ``OVERLAY(s PLACING r FROM a FOR n)``    | ``SUBSTRING(s, 1, a - 1) || r || SUBSTRING(s, a + n)`` |
| ``OVERLAY(s PLACING r FROM a)``          | the same, n as long as r                             |
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor

Parse = Callable[[Cursor], exp.Expr]


def parse_position(cursor: Cursor, token: Token, operand: Parse) -> exp.Expr:
    """The next token is the first of the arguments. operand: reads what binds tighter than IN."""
    with cursor.nested():
        part = operand(cursor)
        if not cursor.take(TokenType.COMMA) and not cursor.take_words("IN"):
            raise cursor.expected("IN or a comma", "write POSITION('part' IN s)")
        text = operand(cursor)
        cursor.expect(TokenType.R_PAREN, ")")
    return _call(cursor, token, "POSITION", part, text)


def parse_overlay(cursor: Cursor, token: Token, operand: Parse) -> exp.Expr:
    """The next token is the first of the arguments."""
    usage = "write OVERLAY(s PLACING 'new' FROM 3 FOR 2)"
    with cursor.nested():
        text = operand(cursor)
        cursor.expect_word("PLACING", usage)
        new = operand(cursor)
        cursor.expect_word("FROM", usage)
        start = operand(cursor)
        size = operand(cursor) if cursor.take_words("FOR") else None
        cursor.expect(TokenType.R_PAREN, ")")
    if size is None:
        size = _call(cursor, token, "LENGTH", new.copy())
    one = cursor.node(exp.Literal.number(1), token)
    before = cursor.node(exp.Sub(this=start, expression=one.copy()), token, start, one)
    behind = cursor.node(exp.Add(this=start.copy(), expression=size), token, start, size)
    head = _call(cursor, token, "SUBSTRING", text, one, before)
    tail = _call(cursor, token, "SUBSTRING", text.copy(), behind)
    left = cursor.node(exp.DPipe(this=head, expression=new), token, head, new)
    return cursor.node(exp.DPipe(this=left, expression=tail), token, left, tail)


def _call(cursor: Cursor, token: Token, name: str, *arguments: exp.Expr) -> exp.Expr:
    return cursor.node(nodes.Call(name=name, expressions=list(arguments)), token, *arguments)


TEXT_CALLS: dict[str, Callable[[Cursor, Token, Parse], exp.Expr]] = {
    "POSITION": parse_position,
    "OVERLAY": parse_overlay,
}
