"""Where a query may stand inside another: IN (SELECT ...), EXISTS (SELECT ...), FROM (SELECT ...)."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.emit import refuse_changes, starts_operator
from engine.language.grammar.words import SET_OPERATIONS

_QUERIES = ("SELECT", "WITH")


def starts_query(cursor: Cursor) -> bool:
    """Whether a query is next. O(1), but for one that begins with a bracket, O(tokens in it)."""
    return (
        cursor.word in _QUERIES
        or starts_sets(cursor)
        or (starts_operator(cursor) and (cursor.word_ahead(2) in _QUERIES or starts_sets(cursor, 2)))
    )


def starts_sets(cursor: Cursor, ahead: int = 0) -> bool:
    """Whether what comes so many tokens ahead is ``(query) UNION`` or the like."""
    first = ahead
    while cursor.peek(first).token_type is TokenType.L_PAREN:
        first += 1
    if first == ahead or cursor.word_ahead(first) not in _QUERIES:
        return False
    place, depth = first, first - ahead
    while depth:
        kind = cursor.peek(place).token_type
        if kind is TokenType.BREAK:
            return False
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        place += 1
    return cursor.word_ahead(place) in SET_OPERATIONS


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
