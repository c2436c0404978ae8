"""Durations: ``10 MINUTES``, ``30m``, ``1h30m``, ``INTERVAL '10' MINUTE``, ``'1 hour 30 minutes'``; and
intervals, which may hold months too.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from tureen.errors import SyntaxRefused

UNITS_MS = {
    "MILLISECOND": 1,
    "MS": 1,
    "SECOND": 1_000,
    "SEC": 1_000,
    "S": 1_000,
    "MINUTE": 60_000,
    "MIN": 60_000,
    "M": 60_000,
    "HOUR": 3_600_000,
    "H": 3_600_000,
    "DAY": 86_400_000,
    "D": 86_400_000,
    "WEEK": 604_800_000,
}
UNITS_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_GLUED = re.compile(r"[A-Z]+(\d+[A-Z]+)+", re.ASCII)
_PART = re.compile(r"\s*([+-]?\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]+)\s*")
_HINT = "write a number and MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS (ms, s, m, h, d)"
_HINT_OF_INTERVAL = _HINT.replace("DAYS or WEEKS", "DAYS, WEEKS, MONTHS, QUARTERS or YEARS")
_HINT_OF_PARTS = "write each part with its unit, such as INTERVAL '1 hour 30 minutes'"
_PARTS = re.compile(r"[+-]?\s*(\d+\s+)?\d+(:\d+)+(\.\d+)?|[+-]?P.*", re.ASCII | re.IGNORECASE | re.DOTALL)
"""``'1:30'`` and ``'P1DT2H'``, which other systems read."""


class Interval(NamedTuple):
    """months: by the calendar, None where no unit of months is written. ms: all the rest."""

    months: int | None
    ms: int


def starts_duration(cursor: Cursor) -> bool:
    """Whether a duration may be next."""
    return cursor.at(TokenType.NUMBER) or cursor.at(TokenType.STRING) or cursor.word == "INTERVAL"


def parse_duration(cursor: Cursor, *, bare_ms: bool = False) -> nodes.Duration:
    """One duration. ``bare_ms``: a number without a unit counts milliseconds. Raises NotSupported for months,
    quarters and years.
    """
    token = cursor.token
    months, ms = parse_interval(cursor, bare_ms=bare_ms)
    if months is not None:
        raise cursor.not_supported(
            "months, quarters and years have no fixed length",
            "write DAYS, such as 30 DAYS or INTERVAL '365' DAY",
            token,
        )
    return cursor.node(nodes.Duration(this=ms), token)


def parse_interval(cursor: Cursor, *, bare_ms: bool = False, signed: bool = False) -> Interval:
    """One duration, of which months, quarters and years may be a part. ``signed``: it may go back, as in
    ``INTERVAL '-1' DAY``.
    """
    token = cursor.token
    interval = cursor.take_words("INTERVAL")
    if cursor.at(TokenType.STRING):
        text = cursor.advance().text
        hint = _HINT_OF_PARTS if _PARTS.fullmatch(text.strip()) else _HINT_OF_INTERVAL if signed else _HINT
        if not (interval and text.strip().lstrip("+-").replace(".", "", 1).isdecimal()):
            return _of_text(cursor, token, text, hint, signed=signed)
        if not _is_unit(cursor.word):
            raise cursor.expected("a unit of time", hint)
        return _times(cursor, token, text.strip(), cursor.advance().text, hint, signed=signed)
    if not cursor.at(TokenType.NUMBER):
        raise cursor.expected("a duration", _HINT)
    number = cursor.advance()
    if _is_unit(cursor.word):
        return _times(cursor, token, number.text, cursor.advance().text)
    if cursor.token.start == number.end + 1 and _GLUED.fullmatch(cursor.word):
        return _of_text(cursor, token, number.text + cursor.advance().text)
    if bare_ms:
        return _times(cursor, token, number.text, "MS")
    raise cursor.expected("a unit of time", _HINT)


def unit_ms(word: str) -> int | None:
    """Milliseconds of a unit, singular or plural; None if there is no such unit."""
    word = word.upper()
    return UNITS_MS.get(word) or UNITS_MS.get(word.removesuffix("S"))


def _unit_months(word: str) -> int | None:
    """Months of a unit, singular or plural; None if it has no whole number of them."""
    return UNITS_MONTHS.get(word.upper().removesuffix("S"))


def _is_unit(word: str) -> bool:
    return unit_ms(word) is not None or _unit_months(word) is not None


def duration_ms(text: str) -> int | None:
    """``'1 hour 30 minutes'`` in milliseconds; None if that is no duration of a fixed length."""
    found = _interval(text, signed=False)
    return None if found is None or found.months is not None else found.ms


def _interval(text: str, *, signed: bool) -> Interval | None:
    """``'1 year 2 hours'``; None if that is no interval."""
    months: Decimal | None = None
    ms, place = Decimal(0), 0
    while place < len(text):
        match = _PART.match(text, place)
        if match is None or not (signed or match[1][0].isdecimal()):
            return None
        count, of_month, of_ms = Decimal(match[1]), _unit_months(match[2]), unit_ms(match[2])
        if of_month is not None:
            months = (months or Decimal(0)) + count * of_month
        elif of_ms is not None:
            ms += count * of_ms
        else:
            return None
        place = match.end()
    if not place or ms != int(ms) or (months is not None and months != int(months)):
        return None
    return Interval(None if months is None else int(months), int(ms))


def _of_text(cursor: Cursor, token: Token, text: str, hint: str = _HINT, *, signed: bool = False) -> Interval:
    found = _interval(text, signed=signed)
    if found is None:
        raise cursor.text.of_token(token).refuse(SyntaxRefused, "this is not a duration", hint=hint)
    return found


def _times(
    cursor: Cursor, token: Token, text: str, unit: str, hint: str = _HINT, *, signed: bool = False
) -> Interval:
    sign = "[+-]?" if signed else ""
    if not re.fullmatch(rf"{sign}\d{{1,18}}(\.\d{{0,9}})?", text, re.ASCII):
        raise cursor.text.of_token(token).refuse(SyntaxRefused, "this is not a duration", hint=hint)
    of_month = _unit_months(unit)
    count = Decimal(text) * (of_month or unit_ms(unit) or 0)
    if count != int(count):
        whole, smallest = "milliseconds", "the smallest unit is a millisecond"
        if of_month is not None:
            whole, smallest = "months", "write DAYS for parts of a month"
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused, f"this is not a whole number of {whole}", hint=smallest
        )
    return Interval(None, int(count)) if of_month is None else Interval(int(count), 0)


def parse_now_offset(cursor: Cursor) -> exp.Expr:
    """``NOW``, ``NOW - duration``; the next token is NOW."""
    token = cursor.advance()
    if cursor.at(TokenType.L_PAREN) and cursor.peek().token_type is TokenType.R_PAREN:
        cursor.advance()
        cursor.advance()
    ms = 0
    while cursor.at(TokenType.DASH) or cursor.at(TokenType.PLUS):
        sign = -1 if cursor.advance().token_type is TokenType.DASH else 1
        ms += sign * int(parse_duration(cursor, bare_ms=True).this)
    return cursor.node(nodes.NowOffset(this=ms), token)
