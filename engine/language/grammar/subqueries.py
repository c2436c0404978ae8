"""Where a query may stand inside another: IN (SELECT ...), EXISTS (SELECT ...), FROM (SELECT ...)."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.emit import refuse_changes, starts_operator


def starts_query(cursor: Cursor) -> bool:
    """Whether a query is next."""
    words = ("SELECT", "WITH")
    return cursor.word in words or (starts_operator(cursor) and cursor.word_ahead(2) in words)


def parse_subquery(cursor: Cursor) -> nodes.SelectQuery:
    """``query )``; the bracket before it was taken."""
    from engine.language.grammar.select import parse_query  # a query holds expressions, which hold queries

    with cursor.nested():
        query = parse_query(cursor)
        refuse_changes(cursor, query, "a subquery", "move {} to the query around it")
        cursor.expect(TokenType.R_PAREN, ") after the subquery")
    return query


def refuse_scalar_subquery(cursor: Cursor) -> None:
    """Raise NotSupported where a query stands in the place of a value."""
    if cursor.word in ("SELECT", "WITH", "VALUES"):
        raise cursor.not_supported(
            "a subquery in the place of a value is not supported",
            "register it as a query of its own, or write x IN (SELECT ...)",
        )
