"""Queries by their names: CREATE QUERY, DROP QUERY, and what names a query elsewhere."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import command_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.inserts import parse_registered, starts_registered
from engine.language.grammar.scalar import string
from engine.language.grammar.subqueries import goes_on_behind_brackets
from engine.language.places import shown
from tureen.errors import NotSupported

NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
"""Tokens that may be a name."""


def names_query(cursor: Cursor) -> bool:
    """Whether a query's name, or a handle or an id in quotes, is next."""
    return cursor.at(TokenType.STRING) or cursor.token.token_type in NAMES


def parse_query_name(cursor: Cursor) -> exp.Expr:
    """``'handle'``, ``'id'`` or a name: a string, or an identifier."""
    return string(cursor) if cursor.at(TokenType.STRING) else cursor.name("the name of a query")


def parse_create_query(
    cursor: Cursor, token: Token, replace: bool, if_not_exists: bool
) -> command_nodes.CreateQueryNode:
    """``name AS query``, behind CREATE QUERY [IF NOT EXISTS]."""
    name = cursor.name("the query's name")
    if replace:
        raise cursor.text.of_token(token).refuse(
            NotSupported,
            "CREATE OR REPLACE QUERY is not supported: another query has another handle",
            hint="ALTER QUERY 'handle' AS SELECT ... gives it another text; or DROP QUERY "
            f"{shown(name.name)}, then CREATE QUERY",
        )
    hint = "write CREATE QUERY name AS SELECT ..."
    cursor.expect_word("AS", hint)
    brackets = not goes_on_behind_brackets(cursor) and cursor.take(TokenType.L_PAREN)
    begin = cursor.token.start
    if not starts_registered(cursor):
        raise cursor.expected("SELECT", hint)
    query = parse_registered(cursor)
    end = cursor.end
    if brackets:
        cursor.expect(TokenType.R_PAREN, ")")
    node = command_nodes.CreateQueryNode(
        this=name, query=query, if_not_exists=if_not_exists, begin=begin, end=end
    )
    return cursor.node(node, token, query)


def parse_drop_query(cursor: Cursor, token: Token, if_exists: bool) -> command_nodes.ControlNode:
    """``name``, behind DROP QUERY [IF EXISTS]; a handle or an id in quotes too."""
    if not names_query(cursor):
        raise cursor.expected("the name of a query, or a handle in quotes", "write DROP QUERY name")
    handle = parse_query_name(cursor)
    if cursor.word in ("CASCADE", "RESTRICT"):
        raise cursor.not_supported(
            f"DROP QUERY ... {cursor.word} is not supported", "leave it out: nothing reads a query"
        )
    if cursor.at(TokenType.COMMA):
        raise cursor.not_supported("DROP of several names is not supported", "drop them one by one")
    node = command_nodes.ControlNode(action="terminate", handle=handle, release=False, if_exists=if_exists)
    return cursor.node(node, token)
