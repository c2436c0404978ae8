"""Pieces of SQL that a program puts together: names, constants, and texts with constants put in.

What comes out is one name, one constant, one piece: a value never ends the text around it. O(text).

    >>> name("city"), name("Order Id"), name("order")
    ('city', '"Order Id"', '"order"')
    >>> literal("O'Hare"), literal(None), literal(True), literal(date(2025, 6, 1))
    ("'O''Hare'", 'NULL', 'TRUE', "'2025-06-01'")
    >>> filled("price > ? AND city <> '?'", [50])
    "price > 50 AND city <> '?'"
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tureen.errors import ParametersRefused, SyntaxRefused

_WORDS = """
ALL AND ANTI ANY AS ASOF BEGIN BETWEEN CASE CAST CLUSTER CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
DATE DISTINCT ELSE EMIT END ESCAPE EXCEPT EXISTS FALSE FETCH FOR FROM FULL GETDATE GROUP HAVING ILIKE IN INNER
INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOCALTIMESTAMP MINUS NATURAL NOT NOW NULL OFFSET ON OR
ORDER OUTER OVER PIVOT QUALIFY RANGE RETAIN RIGHT ROWS SAMPLE SELECT SEMI SOME SORT SYSDATE TABLE TABLESAMPLE
THEN TIME TIMESTAMP TODAY TRUE TRY_CAST UNION UNPIVOT USING WHEN WHERE WINDOW WITH WITHIN
"""
QUOTED = frozenset(_WORDS.split())
"""Words that mean something by themselves; as names they are written in quotes."""

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_DURATION = re.compile(r"\s*\d+\s+[a-z]+(?:\s+\d+\s+[a-z]+)*\s*", re.IGNORECASE)
_TOKEN = re.compile(
    r"""(?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" ) | (?P<comment> --[^\n\r]* | /\*.*?\*/ )
      | (?P<stray> ['";] | /\* ) | (?P<opens> [(\[] ) | (?P<closes> [)\]] ) | (?P<value> \? )""",
    re.VERBOSE | re.DOTALL,
)
_PAIRS = {"(": ")", "[": "]"}


class Piece(str):
    """SQL that stands for a value as it is."""

    __slots__ = ()


def name(text: str) -> str:
    """A name as a text writes it: this very name, in quotes where it has to be. Raises SyntaxRefused."""
    if not text or any(ord(character) < 32 for character in text):
        raise SyntaxRefused(
            f"{text!r} is no name", hint="a name has at least one character and no control characters"
        )
    if _PLAIN.fullmatch(text) and text.upper() not in QUOTED:
        return text
    return '"' + text.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A constant as a text writes it; a datetime with a zone in UTC. Raises ParametersRefused.

    >>> literal(Decimal("1.50")), literal([1, "a"])
    ('1.50', "(1, 'a')")
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(int(value))
        case float() if math.isfinite(value):
            return repr(float(value))
        case Decimal() if value.is_finite():
            return format(value, "f")
        case Piece():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return f"'{moment.isoformat(sep=' ', timespec='milliseconds')}'"
        case date():
            return f"'{value.isoformat()}'"
        case list() | tuple() if value:
            return f"({', '.join(literal(one) for one in value)})"
    raise ParametersRefused(
        f"{value!r} is not a constant of the language",
        hint="numbers that are finite, strings, bools, dates, datetimes, None; a list of some for IN",
    )


def duration(given: str | timedelta) -> str:
    """A length of time as a window writes it. Raises SyntaxRefused.

    >>> duration("30 minutes"), duration(timedelta(seconds=1.5))
    ('30 MINUTES', '1500 MILLISECONDS')
    """
    if isinstance(given, timedelta):
        return f"{given // timedelta(milliseconds=1)} MILLISECONDS"
    if not _DURATION.fullmatch(given):
        raise SyntaxRefused(f"{given!r} is not a length of time", hint="write it like 30 minutes")
    return " ".join(given.upper().split())


def filled(text: str, values: Sequence[Any] = ()) -> str:
    """A piece of SQL, without comments, with constants in the place of its ``?``.

    Without values placeholders stay: the whole is a template then. Raises SyntaxRefused for what is no whole
    piece (a bracket or a quote left open, a semicolon), ParametersRefused for a value too many or too few.
    """
    parts: list[str] = []
    closing: list[str] = []
    begin = used = 0
    for token in _TOKEN.finditer(text):
        parts.append(text[begin : token.start()])
        begin, said = token.end(), token[0]
        if token["stray"] or (token["closes"] and (not closing or closing.pop() != said)):
            raise _no_piece(text, said)
        if token["opens"]:
            closing.append(_PAIRS[said])
        if token["comment"]:
            said = " "
        elif token["value"] and values:
            said = literal(values[used]) if used < len(values) else said
            used += 1
        parts.append(said)
    parts.append(text[begin:])
    if closing:
        raise _no_piece(text, closing[-1])
    if values and used != len(values):
        raise ParametersRefused(f"{text!r} has {used} placeholders and {len(values)} values")
    piece = "".join(parts).strip()
    if not piece:
        raise SyntaxRefused("a piece of the query is empty", hint="leave it out")
    return piece


def _no_piece(text: str, said: str) -> SyntaxRefused:
    return SyntaxRefused(
        f"{text!r} is not a complete piece of a query: look for {said!r}",
        hint="close quotes and brackets, and give values by ? rather than in the text",
    )
