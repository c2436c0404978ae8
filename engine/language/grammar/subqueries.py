"""Where a query may stand inside another: IN (SELECT ...), EXISTS (SELECT ...), FROM (SELECT ...), and
``(SELECT ...)`` in the place of a value.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.emit import refuse_changes, starts_operator
from engine.language.grammar.operators import COMPARE_OPS
from engine.language.grammar.words import SET_OPERATIONS
from engine.model.expressions import NEGATED
from tureen.errors import SyntaxRefused

_QUERIES = ("SELECT", "WITH", "VALUES")


def starts_query(cursor: Cursor) -> bool:
    """Whether a query is next. O(1), but for one that begins with a bracket, O(tokens in it)."""
    return (
        cursor.word in ("SELECT", "WITH")
        or starts_values(cursor)
        or starts_in_brackets(cursor)
        or (starts_operator(cursor) and (cursor.word_ahead(2) in _QUERIES or starts_in_brackets(cursor, 2)))
    )


def starts_values(cursor: Cursor) -> bool:
    """Whether ``VALUES (`` is next."""
    return cursor.word == "VALUES" and cursor.peek().token_type is TokenType.L_PAREN


def goes_on_behind_brackets(cursor: Cursor) -> bool:
    """Whether a query is next that begins with one in brackets, and is more than that."""
    behind = _behind_brackets(cursor, 0)
    return behind is not None and cursor.word_ahead(behind) in _BEHIND


def starts_in_brackets(cursor: Cursor, ahead: int = 0) -> bool:
    """Whether what comes so many tokens ahead is ``(query)``, or a query that begins with one in brackets."""
    behind = _behind_brackets(cursor, ahead)
    return behind is not None and (
        cursor.peek(behind).token_type in _ENDS or cursor.word_ahead(behind) in _BEHIND
    )


_ENDS = (TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.BREAK)
_BEHIND = (*SET_OPERATIONS, "ORDER", "LIMIT", "OFFSET", "FETCH", "EMIT")


def starts_lateral(cursor: Cursor) -> bool:
    """Whether a query in brackets is next, whatever is behind it."""
    return _behind_brackets(cursor, 0) is not None


def _behind_brackets(cursor: Cursor, ahead: int) -> int | None:
    """How many tokens ahead those are behind a query in brackets; None: there is none. O(tokens in it)."""
    first = ahead
    while cursor.peek(first).token_type is TokenType.L_PAREN:
        first += 1
    if first == ahead or cursor.word_ahead(first) not in _QUERIES:
        return None
    place, depth = first, first - ahead
    while depth:
        kind = cursor.peek(place).token_type
        if kind is TokenType.BREAK:
            return None
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        place += 1
    return place


def parse_subquery(cursor: Cursor, *, is_stream: bool = False) -> nodes.SelectQuery:
    """``query )``; the bracket before it was taken. is_stream: it may have a stream operator."""
    from engine.language.grammar.select import parse_query  # a query holds expressions, which hold queries

    with cursor.nested():
        query = parse_query(cursor)
        _refuse_changes(cursor, query, is_stream=is_stream)
        cursor.expect(TokenType.R_PAREN, ") after the subquery")
    return query


_QUANTIFIERS = ("ANY", "SOME", "ALL")


def starts_quantified(cursor: Cursor) -> bool:
    """Whether ``ANY (query)``, SOME or ALL is next."""
    return (
        cursor.word in _QUANTIFIERS
        and cursor.peek().token_type is TokenType.L_PAREN
        and (cursor.word_ahead(2) in _QUERIES or starts_in_brackets(cursor, 2))
    )


def parse_quantified(cursor: Cursor, left: exp.Expr, comparison: type[exp.Expr]) -> exp.Expr:
    """``left = ANY (query)`` and the like; the quantifier is next."""
    is_all = cursor.word == "ALL"
    cursor.advance()
    cursor.advance()
    query = parse_subquery(cursor)
    op = COMPARE_OPS[comparison]
    if is_all:
        op = NEGATED[op]
    test: exp.Expr = nodes.AnyQuery(this=left, op=op, query=query)
    if op == "=":
        test = nodes.InQuery(this=left, query=query)
    test = cursor.node(test, left, left, query)
    return cursor.node(exp.Not(this=test), left, test) if is_all else test


def parse_stream(cursor: Cursor) -> nodes.SelectQuery:
    """``ISTREAM (query)`` in FROM; its first word is next."""
    from engine.language.grammar.select import parse_query

    with cursor.nested():
        query = parse_query(cursor)
        _refuse_changes(cursor, query, is_stream=True)
    return query


def _refuse_changes(cursor: Cursor, query: nodes.SelectQuery, *, is_stream: bool) -> None:
    operator = query.args.get("operator")
    hint = "move {} to the query around it"
    if operator is not None and not is_stream:
        hint = "select from the stream: (SELECT ... FROM {} (SELECT ...) [RANGE 10 MINUTES])"
    refuse_changes(cursor, query, "a subquery", hint, is_stream=is_stream)


def refuse_values(cursor: Cursor) -> None:
    """Raise NotSupported where VALUES, or a query without brackets of its own, stands for a value."""
    if cursor.word in _QUERIES[:2] or starts_values(cursor):
        raise cursor.refuse(
            SyntaxRefused,
            "a query in the place of a value needs brackets of its own",
            hint="write COALESCE((SELECT ...), 0)",
        )
