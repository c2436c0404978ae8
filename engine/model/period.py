"""Which instants an answer is asked for: NOW, an earlier one, or all of a period."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

VALID_FROM, VALID_TO = "valid_from", "valid_to"
"""The columns that an answer over a period has behind its own."""


@dataclass(frozen=True, slots=True)
class Period:
    """The instants from_ms <= t < to_ms, ms since 1970. to_ms None: up to NOW, and that is one of them."""

    from_ms: int
    to_ms: int | None = None

    def __post_init__(self) -> None:
        if self.to_ms is not None and self.to_ms <= self.from_ms:
            raise ValueError(f"a period from {self.from_ms} does not end at {self.to_ms}")


At = int | Period | None
"""An instant, ms since 1970; a period; None: NOW."""


def period_names(taken: Iterable[str]) -> tuple[str, str]:
    """The names of the two columns behind others of these names: ``_`` is added to one that is taken.

    >>> period_names(["v", "Valid_To"])
    ('valid_from', 'valid_to_')
    """
    names = {one.lower() for one in taken}
    return _free(VALID_FROM, names), _free(VALID_TO, names)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def instants_of(at: At, now_ms: int) -> tuple[int, int] | None:
    """The first and the last instant of what is asked for; None: they are not both up to NOW.

    >>> instants_of(Period(5, 9), 10), instants_of(7, 10), instants_of(None, 10)
    ((5, 8), (7, 7), (10, 10))
    >>> instants_of(Period(5), 10), instants_of(Period(5, 12), 10), instants_of(Period(11), 10)
    ((5, 10), None, None)
    """
    if not isinstance(at, Period):
        first_ms = last_ms = now_ms if at is None else at
    else:
        first_ms, last_ms = at.from_ms, now_ms if at.to_ms is None else at.to_ms - 1
    return (first_ms, last_ms) if first_ms <= last_ms <= now_ms else None
