"""What events Nexmark's generator makes."""

from __future__ import annotations

from dataclasses import dataclass

from tureen.errors import SettingsError

DISORDER_STEP = 953
"""A prime: within a group of g events the one at place i is number ``i * 953 mod g``."""
SEED_MAX = 2**63 - 1
RATE_MAX = 10_000_000
EVENTS_MAX = 10**12
DISORDER_MAX = 1_000_000
BASE_MS_DEFAULT = 1_436_918_400_000
"""2015-07-15 00:00:00 UTC, where the published samples begin."""


@dataclass(frozen=True, slots=True)
class NexmarkSettings:
    """Checked when it is made. Raises SettingsError.

    events: how many, numbered from ``first``; None: without an end, for a run that streams.
    rate: events in a second of event time. base_ms: timestamp of event 0.
    disorder: size g of the groups within which events are shuffled; 1 is in order. Every multiple of 953 is
        refused: it would send some events twice and others never.
    """

    events: int | None = None
    seed: int = 0
    first: int = 0
    rate: int = 10_000
    base_ms: int = BASE_MS_DEFAULT
    disorder: int = 1

    def __post_init__(self) -> None:
        ranges = (
            ("events", self.events if self.events is not None else 1, 1, EVENTS_MAX),
            ("seed", self.seed, 0, SEED_MAX),
            ("first event", self.first, 0, EVENTS_MAX),
            ("rate", self.rate, 1, RATE_MAX),
            ("disorder", self.disorder, 1, DISORDER_MAX),
        )
        for name, value, lowest, highest in ranges:
            if not lowest <= value <= highest:
                raise SettingsError(f"{name} must be from {lowest:,} to {highest:,}, not {value:,}")
        if self.disorder > 1 and self.disorder % DISORDER_STEP == 0:
            raise SettingsError(
                f"a disorder of {self.disorder:,} is a multiple of {DISORDER_STEP}",
                hint=f"give {self.disorder + 1:,}",
            )

    @property
    def lateness_ms(self) -> int:
        """How far a row's timestamp can lie behind one that came before it."""
        return -(-(self.disorder - 1) * 1_000 // self.rate) if self.disorder > 1 else 0
