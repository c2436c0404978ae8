"""``OVER (PARTITION BY .. ORDER BY .. ROWS BETWEEN .. AND .. EXCLUDE ..)``, ``WINDOW name AS (..)``."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration, unit_ms
from engine.language.grammar.ordering import Expressions, parse_order
from tureen.errors import SyntaxRefused

UNITS = ("ROWS", "RANGE", "GROUPS")
_USAGE = "write OVER (PARTITION BY x ORDER BY y)"
_FRAME = "write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW, or UNBOUNDED PRECEDING, 10 FOLLOWING"
_SPECIFICATION = ("PARTITION", "ORDER", *UNITS)


def starts_over(cursor: Cursor) -> bool:
    """Whether OVER and a window are next."""
    kinds = (TokenType.L_PAREN, TokenType.VAR, TokenType.IDENTIFIER)
    return cursor.word == "OVER" and cursor.peek().token_type in kinds


def parse_over(
    cursor: Cursor, call: nodes.Call, token: Token, expression: Expressions, *, ignore_nulls: bool
) -> exp.Expr:
    """A call over a window; the next token is OVER. token: the first of the call."""
    cursor.advance()
    window: exp.Expr
    if cursor.at(TokenType.L_PAREN):
        window = _specification(cursor, expression)
    else:
        name = cursor.name("a window's name or ( after OVER")
        window = cursor.node(nodes.WindowSpecification(base=name, partition=[], order=[], whole=True), name)
    over = nodes.WindowFunctionOver(**call.args, ignore_nulls=ignore_nulls, window=window)
    return cursor.node(over, token, call, window)


def starts_named_windows(cursor: Cursor) -> bool:
    """Whether ``WINDOW name AS (`` is next."""
    return cursor.word == "WINDOW" and cursor.word_ahead(2) == "AS"


def parse_named_windows(cursor: Cursor, expression: Expressions) -> list[nodes.NamedWindow]:
    """``WINDOW name AS (...), ...``; the next token is WINDOW."""
    cursor.advance()
    found: list[nodes.NamedWindow] = []

    def named() -> nodes.NamedWindow:
        token = cursor.token
        name = cursor.name("a window's name")
        if any(one.this.name == name.name for one in found):
            message = f"there are two windows named {name.name!r}"
            raise cursor.text.of_token(token).refuse(SyntaxRefused, message, hint="give one another name")
        cursor.expect_word("AS", "write WINDOW w AS (PARTITION BY x ORDER BY y)")
        window = _specification(cursor, expression)
        found.append(cursor.node(nodes.NamedWindow(this=name, window=window), token, window))
        return found[-1]

    return cursor.listed(named)


def _specification(cursor: Cursor, expression: Expressions) -> nodes.WindowSpecification:
    token = cursor.expect(TokenType.L_PAREN, "( and a window", _USAGE)
    base = None
    partition: list[exp.Expr] = []
    order: list[nodes.OrderItem] = []
    with cursor.nested():
        named = cursor.at(TokenType.IDENTIFIER) or (
            cursor.at(TokenType.VAR) and cursor.word not in _SPECIFICATION
        )
        if named:
            base = cursor.name("PARTITION BY, ORDER BY or a window's name")
        if cursor.take_words("PARTITION", "BY"):
            partition = cursor.listed(lambda: expression(cursor))
        if cursor.word == "ORDER":
            order = parse_order(cursor, expression)
        frame = _frame(cursor) if cursor.word in UNITS else None
        cursor.expect(TokenType.R_PAREN, ")", _USAGE)
    window = nodes.WindowSpecification(base=base, partition=partition, order=order, frame=frame)
    parts: list[exp.Expr] = [*partition, *order, *([] if frame is None else [frame])]
    return cursor.node(window, token, *parts)


def _frame(cursor: Cursor) -> nodes.FrameClause:
    token = cursor.advance()
    if cursor.take_words("BETWEEN"):
        start = _bound(cursor)
        cursor.expect_word("AND", _FRAME)
        end = _bound(cursor)
    else:
        start = _bound(cursor)
        end = cursor.node(nodes.FrameBound(side=None), token)
        if start.args["side"] == "FOLLOWING":
            raise cursor.text.of_node(start).refuse(
                SyntaxRefused, "a frame that begins behind its row needs an end", hint=_FRAME
            )
    exclude = _exclusion(cursor) if cursor.word == "EXCLUDE" else "no others"
    clause = nodes.FrameClause(unit=token.text.lower(), start=start, end=end, exclude=exclude)
    return cursor.node(clause, token, start, end)


def _bound(cursor: Cursor) -> nodes.FrameBound:
    """``UNBOUNDED PRECEDING``, ``CURRENT ROW``, ``10 FOLLOWING``, ``INTERVAL '5' MINUTE PRECEDING``."""
    token = cursor.token
    if cursor.take_words("CURRENT", "ROW"):
        return cursor.node(nodes.FrameBound(side=None), token)
    distance: exp.Expr | None = None
    if not cursor.take_words("UNBOUNDED"):
        distance = _distance(cursor)
    if cursor.word not in ("PRECEDING", "FOLLOWING"):
        raise cursor.expected("PRECEDING or FOLLOWING", _FRAME)
    side = cursor.advance().text.upper()
    bound = nodes.FrameBound(side=side, distance=distance)
    return cursor.node(bound, token, *([] if distance is None else [distance]))


def _distance(cursor: Cursor) -> exp.Expr:
    token = cursor.token
    if cursor.at(TokenType.DASH):
        raise cursor.refuse(
            SyntaxRefused,
            "a distance is not below 0",
            hint="write PRECEDING for rows before, FOLLOWING behind",
        )
    if cursor.word == "INTERVAL" or (cursor.at(TokenType.NUMBER) and unit_ms(cursor.word_ahead())):
        return parse_duration(cursor)
    if not cursor.at(TokenType.NUMBER):
        raise cursor.expected("a number, an INTERVAL, UNBOUNDED or CURRENT ROW", _FRAME)
    return cursor.node(exp.Literal(this=cursor.advance().text, is_string=False), token)


def _exclusion(cursor: Cursor) -> str:
    cursor.advance()
    for words in (("CURRENT", "ROW"), ("GROUP",), ("TIES",), ("NO", "OTHERS")):
        if cursor.take_words(*words):
            return " ".join(words).lower()
    raise cursor.expected("CURRENT ROW, GROUP, TIES or NO OTHERS", "write EXCLUDE CURRENT ROW")
