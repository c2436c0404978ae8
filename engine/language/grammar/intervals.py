"""Instants that an interval moves: by months of the calendar first, then by all that has a fixed length."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_interval


def starts_interval(cursor: Cursor) -> bool:
    """Whether INTERVAL and its length are next."""
    return cursor.word == "INTERVAL" and cursor.peek().token_type in (TokenType.STRING, TokenType.NUMBER)


def parse_moved(cursor: Cursor, instant: exp.Expr, way: type[exp.Binary]) -> exp.Expr:
    """``t + INTERVAL '5' MINUTE``, or -: an instant so many months and then milliseconds later, or before."""
    token = cursor.token
    months, ms = parse_interval(cursor)
    if months is not None:
        count: exp.Expr = cursor.node(exp.Literal(this=str(months), is_string=False), token)
        if way is exp.Sub:
            count = cursor.node(exp.Neg(this=count), token, count)
        call = nodes.Call(name="ADD_MONTHS", expressions=[instant, count])
        instant = cursor.node(call, instant, instant, count)
        if not ms:
            return instant
    span = cursor.node(exp.Literal(this=str(ms), is_string=False), token)
    epoch_ms = cursor.node(nodes.Call(name="EPOCH_MS", expressions=[instant]), instant, instant)
    moved = cursor.node(way(this=epoch_ms, expression=span), instant, epoch_ms, span)
    return cursor.node(nodes.Call(name="TO_TIMESTAMP", expressions=[moved]), instant, moved)
