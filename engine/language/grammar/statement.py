"""Whole statements: SELECT, CREATE STREAM, DROP STREAM; the rest is refused with what to do instead."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar.cursor import Cursor
from engine.language.grammar.scalar import refuse_parameter
from engine.language.grammar.select import parse_select
from engine.language.grammar.streams import parse_create, parse_drop
from engine.language.grammar.words import STATEMENTS_REFUSED
from tureen.errors import NotSupported, SyntaxRefused

_STATEMENTS = "SELECT, CREATE STREAM or DROP STREAM"


def parse_statement(cursor: Cursor) -> exp.Expr:
    """One statement with at most semicolons after it."""
    word = cursor.word
    tree: exp.Expr
    if word == "SELECT":
        tree = parse_select(cursor)
    elif word == "CREATE":
        tree = parse_create(cursor)
    elif word == "DROP":
        tree = parse_drop(cursor)
    elif word in STATEMENTS_REFUSED:
        raise cursor.not_supported(f"{word} is not served", STATEMENTS_REFUSED[word])
    elif cursor.at_end:
        raise cursor.refuse(SyntaxRefused, "the text holds no statement", hint=f"write {_STATEMENTS}")
    elif cursor.at(TokenType.L_PAREN) and cursor.word_ahead() == "SELECT":
        raise cursor.refuse(SyntaxRefused, "a query cannot stand in brackets", hint="leave the brackets out")
    else:
        raise cursor.expected(_STATEMENTS)
    if cursor.at(TokenType.SEMICOLON):
        while cursor.take(TokenType.SEMICOLON):
            pass
        if not cursor.at_end:
            raise cursor.refuse(
                NotSupported, "one text holds one statement", hint="send the statements one by one"
            )
    if not cursor.at_end:
        refuse_parameter(cursor)
        raise cursor.expected("the end of the statement")
    return tree
