"""``WITH (name = value, ...)``: settings of a stream, of a topic that results go to."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from tureen.errors import SyntaxRefused


def parse_options(cursor: Cursor, example: str) -> list[nodes.OptionSetting]:
    """The next token is the word before the bracket: WITH, SETTINGS or SET. ``example``: how such a setting
    is written.
    """
    word = cursor.advance().text.upper()
    usage = f"write {word} ({example})"
    cursor.expect(TokenType.L_PAREN, f"( after {word}", usage)
    options = cursor.listed(lambda: _option(cursor, usage))
    cursor.expect(TokenType.R_PAREN, ") or a comma")
    return options


def _option(cursor: Cursor, usage: str) -> nodes.OptionSetting:
    token = cursor.token
    if cursor.at(TokenType.STRING) or cursor.at(TokenType.IDENTIFIER):
        raise cursor.refuse(SyntaxRefused, "write an option's name without quotes", hint=usage)
    if not cursor.at(TokenType.VAR):
        raise cursor.expected("an option's name", usage)
    cursor.check_word(token)
    cursor.advance()
    cursor.expect(TokenType.EQ, "= after the option's name")
    place = cursor.token
    value: exp.Expr
    if cursor.word in ("TRUE", "FALSE"):
        value = cursor.node(exp.Boolean(this=cursor.advance().text.upper() == "TRUE"), place)
    elif cursor.word == "INTERVAL" or (
        cursor.at(TokenType.NUMBER) and cursor.peek().token_type is TokenType.VAR
    ):
        value = parse_duration(cursor)
    elif cursor.at(TokenType.DASH) and cursor.peek().token_type is TokenType.NUMBER:
        cursor.advance()
        value = cursor.node(exp.Literal(this="-" + cursor.advance().text, is_string=False), place)
    elif cursor.at(TokenType.NUMBER):
        value = cursor.node(exp.Literal(this=cursor.advance().text, is_string=False), place)
    elif cursor.at(TokenType.STRING):
        value = cursor.node(exp.Literal(this=cursor.advance().text, is_string=True), place)
    elif cursor.at(TokenType.VAR) or cursor.at(TokenType.IDENTIFIER):
        raise cursor.refuse(SyntaxRefused, "write an option's value in single quotes", hint=usage)
    else:
        raise cursor.expected("a value")
    return cursor.node(nodes.OptionSetting(name=token.text.lower(), value=value), token)
