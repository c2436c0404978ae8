"""Settings of state buffers: attributes of this module, for all engines of the process, read when a buffer is
made.
"""

from __future__ import annotations

import math

from engine.model.attributes import Attribute, AttributeValue, Bounds
from engine.model.maintenance import PARTITIONS_MAX
from tureen.errors import SettingsError

MODULE = "state-buffers"
"""Under this name an engine tells of them."""

state_partitions = 10
"""Partitions of a calendar: more take less time to expire entries one by one, and more memory."""
expiry_lazy_fraction = 0.05
"""Of the span of a window, how long entries that nobody sees leave may stay behind their exit."""
initial_hash_buckets = 256
"""Of buffers that find entries by their places."""

BUCKETS_MAX = 1 << 24


def attributes() -> tuple[Attribute, ...]:
    """The settings as they stand."""
    return (
        Attribute(
            "state_partitions",
            state_partitions,
            "partitions of a calendar of exits, where a query asks for no other number",
            accepts=f"a whole number from 1 to {PARTITIONS_MAX:,}",
            bounds=Bounds(1, PARTITIONS_MAX),
        ),
        Attribute(
            "expiry_lazy_fraction",
            expiry_lazy_fraction,
            "how long rows may stay behind their exit where nobody sees them leave, of the window's span",
            accepts="a number above 0 and at most 1",
            bounds=Bounds(0, 1, low_excluded=True),
            kind="number",
        ),
        Attribute(
            "initial_hash_buckets",
            initial_hash_buckets,
            "room of a buffer that finds rows by their places, when it is made",
            accepts=f"a whole number from 1 to {BUCKETS_MAX:,}",
            bounds=Bounds(1, BUCKETS_MAX),
        ),
    )


def change(name: str, value: AttributeValue) -> None:
    """Give a setting a value: buffers that are made from now on have it. Raises SettingsError."""
    global state_partitions, expiry_lazy_fraction, initial_hash_buckets
    number = _number(value)
    match name:
        case "state_partitions" if number.is_integer() and 1 <= number <= PARTITIONS_MAX:
            state_partitions = int(number)
        case "expiry_lazy_fraction" if 0 < number <= 1:
            expiry_lazy_fraction = number
        case "initial_hash_buckets" if number.is_integer() and 1 <= number <= BUCKETS_MAX:
            initial_hash_buckets = int(number)
        case _:
            known = {one.name: one.accepts for one in attributes()}
            raise SettingsError(
                f"{MODULE}.{name} cannot be set to {value!r}",
                hint=known.get(name) or f"can be set: {', '.join(known)}",
            )


def _number(value: AttributeValue) -> float:
    """Not a number where it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return math.nan


def partitions_of(span: int, partitions: int | None = None) -> int:
    """How many partitions a calendar of this span has: as asked for, else the default, none narrower than an
    instant. span: in the unit of exits. Raises ValueError if that many cannot be.
    """
    if partitions is None:
        return max(1, min(state_partitions, span))
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise ValueError(f"a calendar has 1 to {PARTITIONS_MAX:,} partitions, not {partitions:,}")
    if partitions > span:
        raise ValueError(f"{partitions:,} partitions are more than the {span:,} instants of the span")
    return partitions


def lazy_interval(span: int) -> int:
    """How long entries may stay behind their exit where expiry is lazy; 1 at least."""
    if not 0 < expiry_lazy_fraction <= 1:
        raise ValueError(f"the lazy fraction is above 0 and at most 1, not {expiry_lazy_fraction}")
    return max(1, int(span * expiry_lazy_fraction))
