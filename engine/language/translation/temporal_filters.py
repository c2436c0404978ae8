"""Conditions on the age of rows, as a window behind their stream.

    FROM s WHERE ts >= NOW() - INTERVAL '10 minutes'        FROM s [RANGE 10 MINUTES]
    FROM s WHERE mz_now() <= ts + INTERVAL '10 minutes'     FROM s [RANGE 10 MINUTES]
    FROM s WHERE ts > NOW() - INTERVAL '10 minutes'         FROM s [RANGE 599999 MILLISECONDS]

Both ends of a window belong to it, and instants are milliseconds. Where a text reads more than one stream, or
the condition is one of several that an OR or brackets hold, it stays as it is and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from engine.language.grammar.durations import duration_ms, unit_ms
from engine.language.translation.edits import Edit, Tokens

_NOW = ("NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "MZ_NOW")
_ENDS = ("GROUP", "ORDER", "HAVING", "LIMIT", "EMIT", "UNION", "WINDOW", "OFFSET", "FETCH")


@dataclass(frozen=True, slots=True)
class _Age:
    """A condition that rows are no older than this: the tokens first <= place < last. column: their time."""

    first: int
    last: int
    age_ms: int
    column: str


def younger_than(tokens: Tokens) -> Iterator[Edit]:
    """Put the window behind the only stream of the text in the place of the condition."""
    reads = list(tokens.find("FROM"))
    if len(reads) != 1 or any(True for _ in tokens.find("JOIN")) or not tokens.is_name(reads[0] + 1):
        return
    source = reads[0] + 1
    where = next(tokens.find("WHERE"), None)
    if where is None or not source < where <= source + 3:  # nothing but an alias stands between
        return
    if any(tokens.kind(place) is TokenType.COMMA for place in range(source, where)):
        return
    end = next((place for place in range(where, len(tokens)) if _is_end(tokens, place)), len(tokens))
    if any(tokens.word(place) in ("OR", "BETWEEN", "CASE", "SELECT") for place in range(where, end)):
        return
    found = next((age for place in range(where + 1, end) if (age := _age(tokens, place, end))), None)
    if found is None or tokens.word(found.first - 1) not in ("WHERE", "AND"):
        return
    if found.last < end and tokens.word(found.last) != "AND":
        return
    yield Edit(
        tokens.end(source),
        tokens.end(source),
        f" [RANGE {_written(found.age_ms)}]",
        f"the window goes by the time column of {tokens.text(source)}, which {found.column} must be, and by "
        "NOW of the stream, not of the clock",
    )
    yield _without(tokens, where, found, end)


def _is_end(tokens: Tokens, place: int) -> bool:
    return tokens.word(place) in _ENDS or tokens.kind(place) is TokenType.SEMICOLON


def _without(tokens: Tokens, where: int, age: _Age, end: int) -> Edit:
    """Leave out the condition, with the AND beside it, or the WHERE where it is the only one."""
    if tokens.word(age.first - 1) == "AND":
        return Edit(tokens.end(age.first - 2), tokens.end(age.last - 1), "")
    if age.last < end:
        return Edit(tokens.begin(age.first), tokens.begin(age.last + 1), "")
    return Edit(tokens.end(where - 1), tokens.end(age.last - 1), "")


def _age(tokens: Tokens, place: int, end: int) -> _Age | None:
    """The condition that begins at a place; None where none does."""
    now = _now(tokens, place)
    if now is not None and tokens.kind(now) is TokenType.LTE:
        column = _column(tokens, now + 1)
        if column is None or tokens.kind(column) is not TokenType.PLUS:
            return None
        return _behind(tokens, place, now + 1, column, column + 1, end, is_strict=False)
    column = _column(tokens, place)
    if column is None or tokens.kind(column) not in (TokenType.GT, TokenType.GTE):
        return None
    now = _now(tokens, column + 1)
    if now is None or tokens.kind(now) is not TokenType.DASH:
        return None
    strict = tokens.kind(column) is TokenType.GT
    return _behind(tokens, place, place, column, now + 1, end, is_strict=strict)


def _behind(
    tokens: Tokens, first: int, begin: int, stop: int, interval: int, end: int, *, is_strict: bool
) -> _Age | None:
    """begin, stop: the tokens of the column. interval: where INTERVAL is to stand."""
    if tokens.word(interval) != "INTERVAL" or tokens.kind(interval + 1) is not TokenType.STRING:
        return None
    text, last = tokens.text(interval + 1), interval + 2
    if last < end and unit_ms(tokens.word(last)) is not None:
        text, last = f"{text} {tokens.word(last)}", last + 1
    age_ms = duration_ms(text)
    if age_ms is None or age_ms <= is_strict:
        return None
    return _Age(first, last, age_ms - is_strict, tokens.slice(begin, stop))


def _now(tokens: Tokens, place: int) -> int | None:
    """The place behind what means the instant of now; None where none is there."""
    if tokens.word(place) not in _NOW:
        return None
    has_brackets = tokens.kind(place + 1) is TokenType.L_PAREN
    if has_brackets and tokens.kind(place + 2) is not TokenType.R_PAREN:
        return None
    return place + 3 if has_brackets else place + 1


def _column(tokens: Tokens, place: int) -> int | None:
    """The place behind the name of a column; None where none is there."""
    if not tokens.is_name(place) or tokens.word(place) in _NOW:
        return None
    if tokens.kind(place + 1) is TokenType.DOT and tokens.is_name(place + 2):
        return place + 3
    return place + 1


def _written(ms: int) -> str:
    for unit, length_ms in (("HOURS", 3_600_000), ("MINUTES", 60_000), ("SECONDS", 1_000)):
        if ms % length_ms == 0:
            return f"{ms // length_ms} {unit}"
    return f"{ms} MILLISECONDS"
