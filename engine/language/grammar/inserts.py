"""INSERT INTO source [(columns)] VALUES (values), ..., and INSERT INTO stream [(columns)] query.

The first writes records once. The second is a query, whose rows are written as they come: it stands wherever
a query is registered (:func:`parse_registered`).
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import command_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.scalar import parse_expression, refuse_parameter, string
from engine.language.grammar.select import parse_query
from engine.language.grammar.subqueries import starts_in_brackets, starts_query

INSERT_ROWS_MAX = 1_000
"""Rows of one statement: they are checked and written together."""
_HINT = "write INSERT INTO name (column, ...) VALUES (literal, ...), (...)"
_INSTANTS = ("DATE", "TIMESTAMP")
_WORDS = ("TRUE", "FALSE", "NULL")
_ENDS = (TokenType.COMMA, TokenType.R_PAREN)


def parse_insert(cursor: Cursor) -> command_nodes.InsertNode | command_nodes.InsertQueryNode:
    """The whole statement. Raises SyntaxRefused, NotSupported."""
    token = cursor.advance()
    if cursor.word in ("OVERWRITE", "OR", "IGNORE"):
        raise cursor.not_supported(f"INSERT {cursor.word} is not supported", _HINT)
    cursor.expect_word("INTO", _HINT)
    if cursor.word in ("STREAM", "TABLE") and cursor.word_ahead() not in ("", "VALUES"):
        cursor.advance()
    name = cursor.name("the name of a stream or a table")
    columns = None
    if cursor.at(TokenType.L_PAREN) and not starts_in_brackets(cursor):
        cursor.advance()
        columns = cursor.listed(lambda: cursor.name("a column"))
        cursor.expect(TokenType.R_PAREN, ") or a comma", _HINT)
    if starts_query(cursor) and cursor.word != "VALUES":
        query = parse_query(cursor)
        node = command_nodes.InsertQueryNode(this=name, columns=columns, query=query)
        return cursor.node(node, token, query)
    cursor.expect_word("VALUES", _HINT)
    rows = cursor.listed(lambda: _row(cursor))
    if len(rows) > INSERT_ROWS_MAX:
        raise cursor.text.of_node(rows[INSERT_ROWS_MAX]).exceeded(
            "insert_rows_max",
            INSERT_ROWS_MAX,
            len(rows),
            hint="send several statements, or produce to the topic",
        )
    for word in ("ON", "RETURNING"):
        if cursor.word == word:
            raise cursor.not_supported(f"{word} after VALUES is not supported", "leave it out")
    return cursor.node(command_nodes.InsertNode(this=name, columns=columns, rows=rows), token)


def starts_registered(cursor: Cursor) -> bool:
    """Whether a query is next that may be registered."""
    return starts_query(cursor) or cursor.word == "INSERT"


def parse_registered(cursor: Cursor) -> exp.Expr:
    """A query, or an INSERT of one; it is next. Raises NotSupported for rows, SyntaxRefused."""
    if cursor.word != "INSERT":
        return parse_query(cursor)
    token, found = cursor.token, parse_insert(cursor)
    if isinstance(found, command_nodes.InsertNode):
        raise cursor.not_supported(
            "rows that INSERT has are written once, they are no query", "write INSERT ... VALUES alone", token
        )
    return found


def _row(cursor: Cursor) -> exp.Tuple:
    token = cursor.expect(TokenType.L_PAREN, "( and the values of a row", _HINT)
    values = cursor.listed(lambda: _value(cursor))
    cursor.expect(TokenType.R_PAREN, ") or a comma", _HINT)
    return cursor.node(exp.Tuple(expressions=values), token)


def _value(cursor: Cursor) -> exp.Expr:
    """A literal, or an expression of constants."""
    found = None if cursor.at(TokenType.PARAMETER) else _literal(cursor)
    if found is not None:
        return found
    refuse_parameter(cursor)
    if cursor.word == "DEFAULT":
        raise cursor.not_supported("DEFAULT is not supported", "write NULL, or leave the column out")
    return parse_expression(cursor)


def _literal(cursor: Cursor) -> exp.Expr | None:
    """One that is all of a value; else nothing is taken."""
    ahead = 0
    if cursor.word in _INSTANTS and cursor.peek().token_type is TokenType.STRING:
        ahead = 1
    elif cursor.token.token_type in (TokenType.DASH, TokenType.PLUS):
        ahead = 1
        if cursor.peek().token_type is not TokenType.NUMBER:
            return None
    if cursor.peek(ahead + 1).token_type not in _ENDS:
        return None
    token = cursor.token
    if cursor.peek(ahead).token_type is TokenType.STRING:
        for _ in range(ahead):
            cursor.advance()
        return string(cursor)
    if cursor.peek(ahead).token_type is TokenType.NUMBER:
        sign = "-" if cursor.take(TokenType.DASH) else ""
        cursor.take(TokenType.PLUS)
        return cursor.node(exp.Literal(this=sign + cursor.advance().text, is_string=False), token)
    if cursor.word in _WORDS:
        word = cursor.advance().text.upper()
        value = exp.Null() if word == "NULL" else exp.Boolean(this=word == "TRUE")
        return cursor.node(value, token)
    return None
