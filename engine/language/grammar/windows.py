"""Windows: a clause in brackets after a stream, or BEGIN ... END ... at the end of a query."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration, parse_now_offset
from engine.language.grammar.scalar import number, string
from engine.language.grammar.typenames import starts_typed_literal
from tureen.errors import SyntaxRefused

_FORMS = "write [RANGE 10 MINUTES], [ROWS 100], [NOW] or [UNBOUNDED]"
_ENDS = "write NOW, NOW - 10 MINUTES, TIMESTAMP '2024-01-31 12:00:00' or milliseconds since 1970"


def parse_bracket_window(cursor: Cursor) -> exp.Expr:
    """``[ ... ]``; the next token is the opening bracket."""
    token = cursor.advance()
    clause: exp.Expr
    if cursor.take_words("RANGE"):
        if cursor.take_words("UNBOUNDED"):
            clause = cursor.node(nodes.UnboundedClause(), token)
        elif cursor.take_words("NOW"):
            clause = cursor.node(nodes.NowClause(), token)
        else:
            clause = cursor.node(nodes.RangeClause(this=parse_duration(cursor).this), token)
    elif cursor.take_words("ROWS"):
        if cursor.take_words("UNBOUNDED"):
            clause = cursor.node(nodes.UnboundedClause(), token)
        else:
            rows = cursor.expect(TokenType.NUMBER, "a number of rows", "write [ROWS 100]")
            if not rows.text.isdigit() or len(rows.text) > 18:
                raise cursor.text.of_token(rows).refuse(
                    SyntaxRefused, "this is not a number of rows", hint="write [ROWS 100]"
                )
            clause = cursor.node(nodes.RowsClause(this=int(rows.text)), token)
    elif cursor.take_words("NOW"):
        clause = cursor.node(nodes.NowClause(), token)
    elif cursor.take_words("UNBOUNDED"):
        clause = cursor.node(nodes.UnboundedClause(), token)
    elif cursor.word == "PARTITION":
        raise cursor.not_supported(
            "PARTITION BY in a window is not served", "write [ROWS n] and a WHERE for one key"
        )
    else:
        raise cursor.expected("a window", _FORMS)
    if cursor.word == "SLIDE":
        raise cursor.not_supported(
            "SLIDE is not served", "leave it out: a window follows NOW by the millisecond"
        )
    if cursor.word == "WHERE":
        raise cursor.not_supported("WHERE inside a window is not served", "write WHERE after the window")
    if cursor.word == "PRECEDING":
        raise cursor.expected("]", _FORMS)
    cursor.expect(TokenType.R_BRACKET, "]", _FORMS)
    return clause


def parse_begin_end(cursor: Cursor) -> nodes.BeginEnd:
    """``BEGIN e END e``; the next token is BEGIN."""
    token = cursor.advance()
    begin = _end_of_window(cursor)
    cursor.expect_word("END", "a window is BEGIN e END e; " + _ENDS)
    end = _end_of_window(cursor)
    return cursor.node(nodes.BeginEnd(begin=begin, end=end), token)


def _end_of_window(cursor: Cursor) -> exp.Expr:
    if cursor.take(TokenType.L_PAREN):
        with cursor.nested():
            inside = _end_of_window(cursor)
            cursor.expect(TokenType.R_PAREN, ")")
        return inside
    if cursor.word == "NOW":
        return parse_now_offset(cursor)
    if starts_typed_literal(cursor) and cursor.word in ("TIMESTAMP", "DATE"):
        cursor.advance()
        return string(cursor)
    if cursor.at(TokenType.STRING):
        return string(cursor)
    token = cursor.token
    if cursor.at(TokenType.DASH):
        cursor.advance()
        literal = number(cursor)
        return cursor.node(exp.Literal(this="-" + str(literal.this), is_string=False), token)
    if cursor.at(TokenType.NUMBER):
        return number(cursor)
    raise cursor.expected("an end of the window", _ENDS)
