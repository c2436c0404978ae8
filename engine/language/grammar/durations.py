"""Durations: ``10 MINUTES``, ``30m``, ``1h30m``, ``INTERVAL '10' MINUTE``, ``'1 hour 30 minutes'``."""

from __future__ import annotations

import re
from decimal import Decimal

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
_NO_FIXED_LENGTH = ("MONTH", "QUARTER", "YEAR")
_GLUED = re.compile(r"[A-Z]+(\d+[A-Z]+)+", re.ASCII)
_PART = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]+)\s*")
_MONTHS = "months, quarters and years have no fixed length"
_MONTHS_HINT = "write DAYS, such as 30 DAYS or INTERVAL '365' DAY"
_HINT = "write a number and MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS (ms, s, m, h, d)"


def starts_duration(cursor: Cursor) -> bool:
    """Whether a duration may be next."""
    return cursor.at(TokenType.NUMBER) or cursor.at(TokenType.STRING) or cursor.word == "INTERVAL"


def parse_duration(cursor: Cursor, *, bare_ms: bool = False) -> nodes.Duration:
    """One duration. ``bare_ms``: a number without a unit counts milliseconds."""
    token = cursor.token
    interval = cursor.take_words("INTERVAL")
    if cursor.at(TokenType.STRING):
        text = cursor.advance().text
        bare = text.strip().replace(".", "", 1).isdecimal()
        unit = _unit(cursor) if interval and bare else None
        ms = _of_text(cursor, token, text) if unit is None else _times(cursor, token, text.strip(), unit)
    elif cursor.at(TokenType.NUMBER):
        number = cursor.advance()
        text, word = number.text, cursor.word
        if unit_ms(word) is not None or word.removesuffix("S") in _NO_FIXED_LENGTH:
            ms = _times(cursor, token, text, _unit(cursor))
        elif cursor.token.start == number.end + 1 and _GLUED.fullmatch(word):
            ms = _of_text(cursor, token, text + word)
            cursor.advance()
        elif bare_ms:
            ms = _times(cursor, token, text, 1)
        else:
            raise cursor.expected("a unit of time", _HINT)
    else:
        raise cursor.expected("a duration", _HINT)
    return cursor.node(nodes.Duration(this=ms), token)


def _unit(cursor: Cursor) -> int:
    ms = unit_ms(cursor.word)
    if ms is None:
        if cursor.word.removesuffix("S") in _NO_FIXED_LENGTH:
            raise cursor.not_supported(_MONTHS, _MONTHS_HINT)
        raise cursor.expected("a unit of time", _HINT)
    cursor.advance()
    return ms


def unit_ms(word: str) -> int | None:
    """Milliseconds of a unit, singular or plural; None if there is no such unit."""
    word = word.upper()
    return UNITS_MS.get(word) or UNITS_MS.get(word.removesuffix("S"))


def duration_ms(text: str) -> int | None:
    """``'1 hour 30 minutes'`` in milliseconds; None if that is no duration."""
    total, place = Decimal(0), 0
    while place < len(text):
        match = _PART.match(text, place)
        unit = unit_ms(match.group(2)) if match else None
        if match is None or unit is None:
            return None
        total += Decimal(match.group(1)) * unit
        place = match.end()
    return int(total) if place and total == int(total) else None


def _of_text(cursor: Cursor, token: Token, text: str) -> int:
    ms = duration_ms(text)
    if ms is None and any(
        word.upper().removesuffix("S") in _NO_FIXED_LENGTH for word in re.findall(r"[a-zA-Z]+", text)
    ):
        raise cursor.not_supported(_MONTHS, _MONTHS_HINT, token)
    if ms is None:
        raise cursor.text.of_token(token).refuse(SyntaxRefused, "this is not a duration", hint=_HINT)
    return ms


def _times(cursor: Cursor, token: Token, text: str, unit: int) -> int:
    if not re.fullmatch(r"\d{1,18}(\.\d{0,9})?", text, re.ASCII):
        raise cursor.text.of_token(token).refuse(SyntaxRefused, "this is not a duration", hint=_HINT)
    ms = Decimal(text) * unit
    if ms != int(ms):
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused,
            "this is not a whole number of milliseconds",
            hint="the smallest unit is a millisecond",
        )
    return int(ms)


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
