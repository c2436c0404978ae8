"""Whole statements, by their first word; what is not supported is refused with what to do instead."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import command_nodes, nodes
from engine.language.grammar.commands import (
    parse_alter,
    parse_control,
    parse_describe,
    parse_explain,
    parse_show,
)
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.emit import OPERATORS
from engine.language.grammar.inserts import parse_insert
from engine.language.grammar.scalar import refuse_parameter
from engine.language.grammar.select import parse_query
from engine.language.grammar.semicolons import semicolon_missing
from engine.language.grammar.streams import parse_create, parse_drop
from engine.language.grammar.subqueries import starts_in_brackets
from engine.language.grammar.words import STATEMENTS_REFUSED
from engine.language.places import near
from tureen.errors import NotSupported, SyntaxRefused

_CLAUSES = ("WHERE", "GROUP", "HAVING", "BEGIN", "ORDER", "LIMIT", "OFFSET", "EMIT", "JOIN", "ON")
_IN_ORDER = (
    "clauses come in this order: FROM, JOIN, WHERE, GROUP BY, HAVING, UNION, ORDER BY, LIMIT, "
    "WITH PREFERENCE, EMIT"
)
_STATEMENTS = "SELECT, CREATE, INSERT, DROP, SHOW, DESCRIBE, EXPLAIN, PAUSE, RESUME, TERMINATE or ALTER"
_QUERIES = ("SELECT", "WITH", "VALUES")
_NOTHING_FOLLOWS = (
    command_nodes.ShowNode,
    command_nodes.DescribeNode,
    command_nodes.ControlNode,
    nodes.DropNode,
    command_nodes.RenameQueryNode,
)

_PARSERS: dict[str, Callable[[Cursor], exp.Expr]] = {
    "SELECT": parse_query,
    "WITH": parse_query,
    "VALUES": parse_query,
    **dict.fromkeys(OPERATORS, parse_query),
    "CREATE": parse_create,
    "INSERT": parse_insert,
    "DROP": parse_drop,
    "SHOW": parse_show,
    "LIST": parse_show,
    "DESCRIBE": parse_describe,
    "DESC": parse_describe,
    "EXPLAIN": parse_explain,
    "ALTER": parse_alter,
    "PAUSE": parse_control,
    "RESUME": parse_control,
    "TERMINATE": parse_control,
}
STATEMENT_WORDS = frozenset(_PARSERS)
"""The words that a statement may begin with."""


def parse_statement(cursor: Cursor) -> exp.Expr:
    """One statement with at most semicolons after it."""
    word = cursor.word
    tree: exp.Expr
    if cursor.at(TokenType.L_PAREN) and (starts_in_brackets(cursor) or cursor.word_ahead() in _QUERIES):
        tree = parse_query(cursor)
    elif word in _PARSERS:
        tree = _PARSERS[word](cursor)
    elif word in STATEMENTS_REFUSED:
        raise cursor.not_supported(f"{word} is not supported", STATEMENTS_REFUSED[word])
    elif cursor.at_end:
        raise cursor.refuse(
            SyntaxRefused,
            "the text contains no statement",
            hint="write SELECT columns FROM stream, or CREATE STREAM name (column TYPE, ...)",
        )
    else:
        raise cursor.expected(_STATEMENTS, near(cursor.word, [*_PARSERS, *STATEMENTS_REFUSED]))
    if cursor.at(TokenType.SEMICOLON):
        while cursor.take(TokenType.SEMICOLON):
            pass
        if not cursor.at_end:
            raise cursor.refuse(
                NotSupported,
                "a text with several statements is not supported",
                hint="send the statements one by one, as tureen sql does with a text of several",
            )
    if not cursor.at_end:
        refuse_parameter(cursor)
        hint = _IN_ORDER if cursor.word in _CLAUSES else None
        if isinstance(tree, _NOTHING_FOLLOWS):
            hint = "leave it out"
        raise cursor.expected("the end of the statement", semicolon_missing(cursor) or hint)
    return tree
