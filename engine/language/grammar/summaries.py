"""Statements about summaries of streams.

    CREATE SUMMARY name ON stream (column) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3) [SETTINGS (...)]
    ALTER SUMMARY name SET (theta = 0.5)

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, figure 3a.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from engine.language.grammar.options import parse_options
from tureen.errors import NotSupported, SyntaxRefused

USAGE = "write CREATE SUMMARY name ON stream (column) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)"
_SETTINGS = "theta = 0.7, kind = 'count_sketch'"
_DIGITS_MAX = 15
_ALTER = "theta = 0.5"
_COLLAPSE = (
    "write COLLAPSE(rate, depth): how many times longer each granularity is than the one before, and how "
    "many granularities there are"
)


def parse_create_summary(
    cursor: Cursor, token: Token, name: exp.Identifier, if_not_exists: bool
) -> nodes.CreateSummaryNode:
    """What stands behind the name. Raises SyntaxRefused, NotSupported."""
    cursor.expect_word("ON", USAGE)
    stream = cursor.name("the stream's name")
    cursor.expect(TokenType.L_PAREN, "( and a column", USAGE)
    attribute = _attribute(cursor)
    if not cursor.take_words("WITH", "GRANULARITY"):
        raise cursor.expected("WITH GRANULARITY", USAGE)
    granularity = parse_duration(cursor)
    if not cursor.take_words("AND", "COLLAPSE"):
        raise cursor.expected("AND COLLAPSE", USAGE)
    cursor.expect(TokenType.L_PAREN, "( after COLLAPSE", _COLLAPSE)
    rate = _whole(cursor, "a rate")
    cursor.expect(TokenType.COMMA, "a comma and the depth", _COLLAPSE)
    depth = _whole(cursor, "a depth")
    cursor.expect(TokenType.R_PAREN, ")", _COLLAPSE)
    settings = parse_options(cursor, _SETTINGS) if cursor.word == "SETTINGS" else []
    if cursor.word == "WITH":
        raise cursor.not_supported(
            "WITH (...) behind a summary is not supported", f"write SETTINGS ({_SETTINGS})"
        )
    node = nodes.CreateSummaryNode(
        this=name,
        stream=stream,
        attribute=attribute,
        granularity=granularity,
        rate=rate,
        depth=depth,
        settings=settings,
        if_not_exists=if_not_exists,
    )
    return cursor.node(node, token)


def _attribute(cursor: Cursor) -> exp.Identifier:
    """One column and the closing bracket."""
    place = cursor.place
    names = (TokenType.VAR, TokenType.IDENTIFIER)
    is_column = cursor.token.token_type in names and cursor.peek().token_type in (
        TokenType.R_PAREN,
        TokenType.COMMA,
    )
    if not is_column and not cursor.at(TokenType.R_PAREN):
        raise place.refuse(
            NotSupported,
            "a summary is of a column, not of an expression",
            hint="name a column of the stream; an estimate may be part of an expression in WITH PREFERENCE",
        )
    attribute = cursor.name("a column's name")
    if cursor.at(TokenType.COMMA):
        raise cursor.not_supported(
            "a summary of several columns is not supported", "write a summary for each column"
        )
    cursor.expect(TokenType.R_PAREN, ") after the column", USAGE)
    return attribute


def _whole(cursor: Cursor, what: str) -> exp.Literal:
    """A whole number with its sign."""
    token = cursor.token
    sign = "-" if cursor.take(TokenType.DASH) else ""
    text = cursor.expect(TokenType.NUMBER, what, _COLLAPSE).text
    if not text.isdecimal() or len(text) > _DIGITS_MAX:
        raise cursor.text.of_token(token).refuse(SyntaxRefused, f"{what} is a whole number", hint=_COLLAPSE)
    return cursor.node(exp.Literal(this=sign + text, is_string=False), token)


def parse_alter_summary(cursor: Cursor, token: Token) -> nodes.AlterSummaryNode:
    """``SUMMARY name SET (settings)``; the first word is next."""
    cursor.advance()
    name = parse_summary_name(cursor)
    if cursor.word != "SET":
        raise cursor.expected("SET", f"write ALTER SUMMARY name SET ({_ALTER})")
    settings = parse_options(cursor, _ALTER)
    return cursor.node(nodes.AlterSummaryNode(this=name, settings=settings), token)


def parse_summary_name(cursor: Cursor) -> exp.Identifier:
    """The name of a summary, without a dot."""
    name = cursor.name("the summary's name")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported(
            "a summary's name with a dot is not supported", "leave out the part before the dot"
        )
    return name
