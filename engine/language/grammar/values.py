"""Rows without a source: ``VALUES (1, 'a'), (2, 'b')``, and the one row of a SELECT without FROM.

``VALUES ...`` where a query may stand is read as ``SELECT * FROM (VALUES ...)``.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes, source_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.scalar import parse_expression
from tureen.errors import SyntaxRefused

ROWS_MAX = 10_000
USAGE = "write VALUES (1, 'a'), (2, 'b')"


def parse_rows(cursor: Cursor) -> source_nodes.ValueRows:
    """``VALUES (...), (...)``, which is next. Raises LimitExceeded, and SyntaxRefused for rows of other
    widths.
    """
    token = cursor.advance()
    rows = [_row(cursor)]
    while cursor.at(TokenType.COMMA) and cursor.peek().token_type is TokenType.L_PAREN:
        cursor.advance()
        if len(rows) >= ROWS_MAX:
            raise cursor.place.exceeded(
                "constant_rows_max", ROWS_MAX, hint="produce them to a table's topic, and select from that"
            )
        place, row = cursor.place, _row(cursor)
        if len(row.expressions) != len(rows[0].expressions):
            raise place.refuse(
                SyntaxRefused,
                f"this row has {len(row.expressions)} values, the first one {len(rows[0].expressions)}",
                hint=USAGE,
            )
        rows.append(row)
    if len(rows[0].expressions) > cursor.limits.outputs_max:
        raise cursor.text.of_token(token).exceeded("outputs_max", cursor.limits.outputs_max)
    return cursor.node(source_nodes.ValueRows(expressions=rows), token, *rows)


def _row(cursor: Cursor) -> nodes.RowValue:
    token = cursor.expect(TokenType.L_PAREN, "( and values", USAGE)
    with cursor.nested():
        values = cursor.listed(lambda: parse_expression(cursor))
        cursor.expect(TokenType.R_PAREN, ") or a comma", USAGE)
    return cursor.node(nodes.RowValue(expressions=values), token, *values)


def parse_values(cursor: Cursor) -> nodes.SelectQuery:
    """VALUES as a query."""
    token = cursor.token
    item = _item(cursor, parse_rows(cursor), token)
    star = cursor.node(exp.Star(), token)
    return cursor.node(nodes.SelectQuery(expressions=[star], source=item, operator=None), token, star, item)


def no_source(cursor: Cursor, token: Token) -> nodes.FromItem:
    """What a SELECT without FROM is over: one row without columns. token: where the SELECT begins."""
    return _item(cursor, cursor.node(source_nodes.ValueRows(expressions=[]), token), token)


def _item(cursor: Cursor, rows: source_nodes.ValueRows, token: Token) -> nodes.FromItem:
    return cursor.node(nodes.FromItem(this=rows), token, rows)
