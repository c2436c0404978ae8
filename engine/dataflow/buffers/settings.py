"""What state is made with: by one engine, or by all that are given the same settings. Read when a structure
is made.
"""

from __future__ import annotations

import math

from engine.model.attributes import Attribute, AttributeValue, NumberRange
from engine.model.capacities import USUAL, Capacities
from engine.model.maintenance import PARTITIONS_MAX
from tureen.errors import SettingsError

MODULE = "state-buffers"
"""Under this name an engine tells of them."""


class StateSettings:
    """One writer: the owner of the engines."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self.capacities = capacities
        """What structures of state begin with, buffers and all others."""
        self.state_partitions = 10
        """Partitions of a calendar: more take less time to expire entries one by one, and more memory."""
        self.expiry_lazy_fraction = 0.05
        """How long entries that nobody sees leave may stay behind their exit, as a share of the window's
        span.
        """

    def attributes(self) -> tuple[Attribute, ...]:
        """The settings as they stand."""
        return (
            Attribute(
                "state_partitions",
                self.state_partitions,
                "partitions of a calendar of exits, where a query asks for no other number",
                accepts=f"a whole number from 1 to {PARTITIONS_MAX:,}",
                bounds=NumberRange(1, PARTITIONS_MAX),
            ),
            Attribute(
                "expiry_lazy_fraction",
                self.expiry_lazy_fraction,
                "how long rows may stay behind their exit where nobody sees them leave, of the window's span",
                accepts="a number above 0 and at most 1",
                bounds=NumberRange(0, 1, low_excluded=True),
                kind="number",
            ),
        )

    def change(self, name: str, value: AttributeValue) -> None:
        """Give a setting a value: buffers that are made from now on have it. Raises SettingsError."""
        number = _number(value)
        match name:
            case "state_partitions" if number.is_integer() and 1 <= number <= PARTITIONS_MAX:
                self.state_partitions = int(number)
            case "expiry_lazy_fraction" if 0 < number <= 1:
                self.expiry_lazy_fraction = number
            case _:
                known = {one.name: one.accepts for one in self.attributes()}
                raise SettingsError(
                    f"{MODULE}.{name} cannot be set to {value!r}",
                    hint=known.get(name) or f"can be set: {', '.join(known)}",
                )

    def partitions_of(self, span: int, partitions: int | None = None) -> int:
        """How many partitions a calendar of this span has: as asked for, else the default, none narrower than
        an instant. span: in the unit of exits. Raises ValueError if that many cannot be.
        """
        if partitions is None:
            return max(1, min(self.state_partitions, span))
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise ValueError(f"a calendar has 1 to {PARTITIONS_MAX:,} partitions, not {partitions:,}")
        if partitions > span:
            raise ValueError(f"{partitions:,} partitions are more than the {span:,} instants of the span")
        return partitions

    def lazy_interval(self, span: int) -> int:
        """How long entries may stay behind their exit where expiry is lazy; 1 at least."""
        return max(1, int(span * self.expiry_lazy_fraction))


def _number(value: AttributeValue) -> float:
    """Not a number where it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return math.nan
