"""``SELECT ... FOR SYSTEM_TIME FROM a TO b``: an answer over a period, as its text asks for it.

The clause ends a SELECT that is asked once. It is the answer of the whole SELECT that is asked for at each
instant of the period, not the state of one of its tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from tureen.errors import InstantRefused, SyntaxRefused, ValueRefused
from tureen.snapshot import Instant, instant_ms
from tureen.statements import blanked

HINT = "end the SELECT with FOR SYSTEM_TIME FROM '2013-07-01' TO '2013-07-02 12:00', or TO NOW"

_CLAUSE = re.compile(
    r"\bFOR\s+SYSTEM_TIME\s+(?P<how>FROM|BETWEEN)\b(?P<since>.*?)\b(?P<between>TO|AND)\b(?P<until>.*)",
    re.IGNORECASE | re.DOTALL,
)
_INSTANT = re.compile(r"(?:TIMESTAMP\s*|DATE\s*)?'(?P<text>[^']*)'|(?P<ms>-?\d{1,17})", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\?|:(?P<name>\w+)")
_NOW = re.compile(r"NOW(?:\s*\(\s*\))?|CURRENT_TIMESTAMP", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Period:
    """The instants from ``since`` on and before ``until``; None: up to NOW, which is one of them.

    An answer over it has each row that is in the answer at one of them, with ``valid_from`` and ``valid_to``
    behind its columns, cut off at the ends of the period: those with ``valid_from <= t < valid_to`` are the
    answer at t. Its ``now_ms`` is the last instant, its ``errors`` are those of the first.

    >>> Period("1970-01-01T00:00:01Z", 2_000).to_ms
    2000
    """

    since: Instant
    until: Instant | None = None

    def __post_init__(self) -> None:
        """Raises InstantRefused, ValueRefused."""
        if self.to_ms is not None and self.to_ms <= self.from_ms:
            raise ValueRefused("a period ends after it begins", hint="until is behind its last instant")

    @property
    def from_ms(self) -> int:
        """The first instant, ms since 1970."""
        return instant_ms(self.since)

    @property
    def to_ms(self) -> int | None:
        """The instant behind the last, ms since 1970; None: NOW is the last."""
        return None if self.until is None else instant_ms(self.until)

    def as_dict(self) -> dict[str, int]:
        """As requests have it."""
        ends = {"from": self.from_ms, "to": self.to_ms}
        return {name: ms for name, ms in ends.items() if ms is not None}


At = Instant | Period | None
"""What an answer is asked for: an instant, a period, or NOW."""


def asked_at(at: At) -> int | Period | None:
    """An instant as ms since 1970, a period as it is. Raises InstantRefused."""
    return at if at is None or isinstance(at, Period) else instant_ms(at)


Values = Sequence[Any] | Mapping[str, Any]
"""What fills the placeholders of a text, by place or by name."""


def period_of(sql: str) -> tuple[str, Period] | None:
    """As :func:`filled_period_of`, of a text without placeholders.

    >>> period_of("SELECT v FROM s FOR SYSTEM_TIME FROM 10 TO '1970-01-01 00:00:01'")
    ('SELECT v FROM s', Period(since=10, until=1000))
    >>> period_of("SELECT v FROM s FOR SYSTEM_TIME BETWEEN 10 AND 20;")
    ('SELECT v FROM s', Period(since=10, until=21))
    >>> period_of("SELECT ' FOR SYSTEM_TIME FROM 1 TO 2' FROM s -- FOR SYSTEM_TIME FROM 1 TO 2")
    """
    found = filled_period_of(sql, ())
    return None if found is None else found[:2]


def filled_period_of(sql: str, values: Values) -> tuple[str, Period, Values] | None:
    """A SELECT without the period that ends it, the period, and what fills the SELECT's placeholders; None:
    it has no period.

    ``BETWEEN a AND b`` takes b in, ``FROM a TO b`` does not. Raises SyntaxRefused.

    >>> filled_period_of("SELECT v FROM s WHERE k = ? FOR SYSTEM_TIME FROM ? TO ?", (7, 10, 20))
    ('SELECT v FROM s WHERE k = ?', Period(since=10, until=20), (7,))
    >>> filled_period_of("SELECT v FROM s FOR SYSTEM_TIME FROM :since TO NOW", {"since": 10})
    ('SELECT v FROM s', Period(since=10, until=None), {})
    """
    if _CLAUSE.search(sql) is None:
        return None
    found = _CLAUSE.search(blanked(sql))
    if found is None:
        return None
    takes_last = found["how"].upper() == "BETWEEN"
    if takes_last != (found["between"].upper() == "AND"):
        _refuse(sql, found.start("between"), "FROM goes with TO, BETWEEN with AND")
    said = blanked(sql, strings=False)
    ends = _End(said, found.span("since")), _End(said, found.span("until"))
    values, ends = _filled(values, ends, found.start())
    from_ms = _instant(ends[0], now=False)
    to_ms = _instant(ends[1], now=True)
    assert from_ms is not None
    if to_ms is not None and takes_last:
        to_ms += 1
    if to_ms is not None and to_ms <= from_ms:
        _refuse(sql, found.start("until"), "the period ends before it begins")
    return sql[: found.start()].rstrip(), Period(from_ms, to_ms), values


@dataclass(frozen=True, slots=True)
class _End:
    """An end of a period. value: what fills its placeholder; None: it is written in the text."""

    sql: str
    span: tuple[int, int]
    value: Any = None

    @property
    def text(self) -> str:
        return self.sql[slice(*self.span)].strip()

    def refuse(self, why: str) -> NoReturn:
        _refuse(self.sql, self.span[0] + 1, why)


def _names(sql: str) -> set[str]:
    """What placeholders of a text without constants are called."""
    return {found["name"] for found in _PLACEHOLDER.finditer(sql) if found["name"]}


def _filled(values: Values, ends: tuple[_End, _End], begin: int) -> tuple[Values, tuple[_End, _End]]:
    """What the SELECT is filled with, and the ends with their values. Those by place are the last. begin:
    where the clause does.
    """
    marks = [_PLACEHOLDER.fullmatch(one.text) for one in ends]
    if isinstance(values, Mapping):
        names = {mark["name"] for mark in marks if mark is not None} - _names(blanked(ends[0].sql)[:begin])
        found = [values.get(mark["name"]) if mark is not None else None for mark in marks]
        values = {name: value for name, value in values.items() if name not in names}
    else:
        first = max(0, len(values) - sum(mark is not None for mark in marks))
        own = iter(values[first:])
        found = [next(own, None) if mark is not None else None for mark in marks]
        values = values[:first]
    since, until = (replace(end, value=value) for end, value in zip(ends, found, strict=True))
    return values, (since, until)


def _instant(end: _End, *, now: bool) -> int | None:
    """ms since 1970; None: NOW, where that may be."""
    if now and _NOW.fullmatch(end.text):
        return None
    written = _INSTANT.fullmatch(end.text)
    if written is None and end.value is None:
        end.refuse(f"{end.text[:40]!r} is not an instant")
    try:
        if written is None:
            return instant_ms(end.value)
        return int(written["ms"]) if written["ms"] is not None else instant_ms(written["text"])
    except InstantRefused as refused:
        end.refuse(refused.message)


def _refuse(sql: str, place: int, why: str) -> NoReturn:
    before = sql[:place]
    raise SyntaxRefused(
        why, hint=HINT, line=before.count("\n") + 1, column=place - (before.rfind("\n") + 1) + 1
    )
