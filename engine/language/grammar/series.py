"""``GENERATE_SERIES(start, stop [, step])`` and ``RANGE(start, stop [, step])`` in FROM."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import source_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_interval
from engine.language.grammar.intervals import starts_interval
from engine.language.grammar.scalar import parse_expression

SERIES = ("GENERATE_SERIES", "RANGE")
USAGE = "write {name}(start, stop), {name}(start, stop, step) or {name}(start, stop, INTERVAL '1' DAY)"


def starts_series(cursor: Cursor) -> bool:
    """Whether a series is next."""
    return cursor.word in SERIES and cursor.peek().token_type is TokenType.L_PAREN


def parse_series(cursor: Cursor) -> source_nodes.Series:
    """A series, which is next."""
    token = cursor.advance()
    cursor.advance()
    name = token.text.upper()
    bounds: list[exp.Expr] = []
    step: exp.Expr | None = None
    interval: tuple[int, int] | None = None
    with cursor.nested():
        bounds.append(parse_expression(cursor))
        if cursor.take(TokenType.COMMA):
            bounds.append(parse_expression(cursor))
            if cursor.take(TokenType.COMMA):
                interval = _interval(cursor)
                step = parse_expression(cursor) if interval is None else None
        cursor.expect(TokenType.R_PAREN, ") or a comma", USAGE.format(name=name))
    series = source_nodes.Series(name=name, expressions=bounds, step=step, interval=interval)
    return cursor.node(series, token, *bounds, *([] if step is None else [step]))


def _interval(cursor: Cursor) -> tuple[int, int] | None:
    """``[-] INTERVAL ...`` as (months, ms), None where something else is next."""
    sign = 1
    if cursor.at(TokenType.DASH) and cursor.word_ahead() == "INTERVAL":
        cursor.advance()
        sign = -1
    if sign > 0 and not starts_interval(cursor):
        return None
    months, ms = parse_interval(cursor, signed=True)
    return sign * (months or 0), sign * ms
