"""INTERVAL as a value: ``INTERVAL '5' MINUTE``, ``MAKE_INTERVAL(hours => n)``."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_interval
from engine.language.grammar.ordering import Expressions

_MAKE = "write MAKE_INTERVAL(days => 1, hours => n), or n * INTERVAL '1' HOUR"
_UNITS_MS = {
    "weeks": 604_800_000,
    "days": 86_400_000,
    "hours": 3_600_000,
    "mins": 60_000,
    "minutes": 60_000,
    "secs": 1_000,
    "seconds": 1_000,
}
_ORDER = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def starts_interval(cursor: Cursor) -> bool:
    """Whether INTERVAL and its length are next."""
    return cursor.word == "INTERVAL" and cursor.peek().token_type in (TokenType.STRING, TokenType.NUMBER)


def parse_interval_literal(cursor: Cursor) -> exp.Expr:
    """``INTERVAL '1 year 5 minutes'``."""
    token = cursor.token
    months, ms = parse_interval(cursor, signed=True)
    return cursor.node(nodes.IntervalLiteral(this=ms, months=months), token)


def parse_make_interval(cursor: Cursor, expression: Expressions, token: Token) -> exp.Expr:
    """The arguments of ``MAKE_INTERVAL(days => 1)``, or in PostgreSQL's order, as a sum of products."""
    found: exp.Expr | None = None
    place = 0
    while not cursor.at(TokenType.R_PAREN):
        start, unit = cursor.token, _ORDER[min(place, len(_ORDER) - 1)]
        ahead = cursor.peek().token_type, cursor.peek(2).token_type
        if cursor.at(TokenType.VAR) and ahead == (TokenType.EQ, TokenType.GT):
            unit = cursor.advance().text.lower()
            cursor.advance()
            cursor.advance()
        place += 1
        if unit in ("years", "months", "year", "month"):
            raise cursor.not_supported("months and years have no fixed length", _MAKE, start)
        if unit not in _UNITS_MS or place > len(_ORDER):
            raise cursor.not_supported(f"MAKE_INTERVAL has no {unit[:40]!r}", _MAKE, start)
        count = expression(cursor)
        one = cursor.node(nodes.IntervalLiteral(this=_UNITS_MS[unit], months=None), start)
        term = cursor.node(exp.Mul(this=one, expression=count), start, one, count)
        found = (
            term if found is None else cursor.node(exp.Add(this=found, expression=term), start, found, term)
        )
        if not cursor.take(TokenType.COMMA):
            break
    return found or cursor.node(nodes.IntervalLiteral(this=0, months=None), token)
