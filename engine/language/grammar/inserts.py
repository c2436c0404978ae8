"""INSERT INTO source [(columns)] VALUES (literals), ..."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import command_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.scalar import refuse_parameter, string
from engine.language.grammar.subqueries import starts_in_brackets, starts_query

INSERT_ROWS_MAX = 1_000
"""Rows of one statement: they are checked and written together."""
_HINT = "write INSERT INTO name (column, ...) VALUES (literal, ...), (...)"
_INSTANTS = ("DATE", "TIMESTAMP")
_WORDS = ("TRUE", "FALSE", "NULL")


def parse_insert(cursor: Cursor) -> command_nodes.InsertNode:
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
        raise cursor.not_supported(
            "INSERT INTO ... SELECT is not supported: an answer goes on changing",
            "CREATE QUERY name AS SELECT ... EMIT CHANGES INTO name writes its changes to a topic; CREATE "
            "STREAM name AS SELECT ... names its rows",
        )
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


def _row(cursor: Cursor) -> exp.Tuple:
    token = cursor.expect(TokenType.L_PAREN, "( and the values of a row", _HINT)
    values = cursor.listed(lambda: _value(cursor))
    cursor.expect(TokenType.R_PAREN, ") or a comma", _HINT)
    return cursor.node(exp.Tuple(expressions=values), token)


def _value(cursor: Cursor) -> exp.Expr:
    """A literal."""
    token = cursor.token
    if cursor.word in _INSTANTS and cursor.peek().token_type is TokenType.STRING:
        cursor.advance()
    if cursor.at(TokenType.STRING):
        return string(cursor)
    sign = "-" if cursor.take(TokenType.DASH) else ""
    if not sign:
        cursor.take(TokenType.PLUS)
    if cursor.at(TokenType.NUMBER):
        return cursor.node(exp.Literal(this=sign + cursor.advance().text, is_string=False), token)
    if cursor.word in _WORDS and not sign:
        word = cursor.advance().text.upper()
        value = exp.Null() if word == "NULL" else exp.Boolean(this=word == "TRUE")
        return cursor.node(value, token)
    refuse_parameter(cursor)
    if cursor.word == "DEFAULT":
        raise cursor.not_supported("DEFAULT is not supported", "write NULL, or leave the column out")
    raise cursor.expected("a literal", "values are numbers, strings in single quotes, TRUE, FALSE and NULL")
