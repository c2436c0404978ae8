"""What a query allows to be less than exact, in its text or as options of its registration.

A query that allows nothing stays exact: it may lag, it never loses a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tureen.errors import OptionRefused

WEIGHT_DEFAULT = 1.0
WEIGHT_MAX = 1_000.0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a whole query tolerates. max_fp, max_fn: shares of wrong and of missing rows, in [0, 1], where 0
    allows none; max_error: the 95 % interval of an aggregate relative to its value, in (0, 1]. None: nothing
    is said.

    What a scan allows besides stands in it: how far its window may shrink, its sampling rate fall (DOWN TO).
    """

    max_fp: float | None = None
    max_fn: float | None = None
    max_error: float | None = None

    def __bool__(self) -> bool:
        """Whether anything is allowed."""
        return bool(self.max_fp or self.max_fn or self.max_error)

    def named(self) -> dict[str, float]:
        """What is said, by its name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def under(self, over: Tolerance) -> Tolerance:
        """What ``over`` says, and where it says nothing what this one does."""
        return self if over == EXACT else Tolerance(**(self.named() | over.named()))


def amount(name: str, given: object) -> float:
    """The value of ``max_fp``, ``max_fn``, ``max_error`` or ``weight``, from a number or its text.

    Raises OptionRefused: no number, or out of range; NaN is.
    """
    low, high, form = AMOUNTS[name]
    try:
        value = float(given) if isinstance(given, int | float | str) and not isinstance(given, bool) else None
    except (ValueError, OverflowError):
        value = None
    if value is None or not low <= value <= high or (value == 0 and name not in _ZERO):
        shown = repr(given) if len(repr(given)) <= 100 else "this"
        raise OptionRefused(f"{name} cannot be {shown}", hint=form)
    return value


AMOUNTS: Mapping[str, tuple[float, float, str]] = {
    "max_fp": (0.0, 1.0, "a share of wrong rows from 0 to 1, as 0.02; 0 allows none"),
    "max_fn": (0.0, 1.0, "a share of missing rows from 0 to 1, as 0.1; 0 allows none"),
    "max_error": (0.0, 1.0, "a relative error above 0 and up to 1, as 0.05"),
    "weight": (0.0, WEIGHT_MAX, f"a number above 0 and up to {WEIGHT_MAX:,.0f}; 1 is usual"),
}
"""name -> the least value, the greatest, and how it is written."""
_ZERO = ("max_fp", "max_fn")
"""Options that may be 0."""


EXACT = Tolerance()
