"""What of a source's rows RETAIN and the windows of queries need.

Queries that lag behind hold rows back, up to ``held_rows_max``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.stems.rows import Rows
from engine.windows.retention import Hold


@dataclass(frozen=True, slots=True)
class Retention:
    """Decides at the end of a step what a source retains. rows: that are there. now_ms: NOW of the source.
    from_ms: rows of earlier instants went before; None: no end is known. retain_ms: of its statement.
    """

    rows: Rows
    now_ms: int
    from_ms: int | None
    retain_ms: int
    held_rows_max: int

    def of_stream(self, holds: Sequence[Hold]) -> tuple[int | None, int]:
        """The first instant (None: no end is known) and the first ordinal that a stream retains."""
        rows = self.rows
        retained_ms, base = self._needed(holds, self.from_ms)
        held = rows.end - self.held_rows_max
        if base < held:
            _, prompt = self._needed(self._prompt(holds), self.from_ms)
            base = max(base, min(held, prompt))
            if base > rows.base:
                first_ms = rows.timestamp_of(base - 1) + 1
                retained_ms = first_ms if retained_ms is None else max(retained_ms, first_ms)
                # What is left of the instant in which the cut fell goes with the rest of it.
                base = max(base, self._needed(holds, retained_ms)[1])
        return retained_ms, base

    def of_table(self, holds: Sequence[Hold]) -> int | None:
        """The first instant at which a table is known; None: no end is known."""
        rows = self.rows
        retained_ms, _ = self._needed(holds, self.from_ms)
        after = rows.base if retained_ms is None else rows.first_at_or_after(retained_ms + 1)
        held = rows.end - self.held_rows_max
        if after < held:  # so many versions for queries that lag
            prompt_ms, _ = self._needed(self._prompt(holds), self.from_ms)
            assert prompt_ms is not None
            allowed_ms = min(prompt_ms, rows.timestamp_of(held - 1))
            retained_ms = allowed_ms if retained_ms is None else max(retained_ms, allowed_ms)
        return retained_ms

    def _prompt(self, holds: Sequence[Hold]) -> list[Hold]:
        """What queries would need if none lagged."""
        return [replace(hold, now_ms=self.now_ms) for hold in holds]

    def _needed(self, holds: Sequence[Hold], from_ms: int | None) -> tuple[int | None, int]:
        """The first instant and the first ordinal that are needed. from_ms: rows of earlier instants went, or
        are about to.
        """
        rows, now_ms = self.rows, self.now_ms
        retained_ms, counted = now_ms - self.retain_ms, rows.end
        for hold in holds:
            if hold.now_ms is None:
                return from_ms, rows.base
            instant_ms = min(hold.now_ms, now_ms)
            retained_ms = min(retained_ms, instant_ms - max(hold.reach_ms, self.retain_ms))
            end = rows.end if instant_ms == now_ms else rows.first_at_or_after(instant_ms + 1)
            counted = min(counted, end - hold.rows)
            for behind_ms, count in hold.earlier_rows:
                if behind_ms is not None:
                    counted = min(counted, rows.first_at_or_after(instant_ms - behind_ms + 1) - count)
        if from_ms is not None:
            retained_ms = max(retained_ms, from_ms)
        first = rows.first_at_or_after(retained_ms)
        always = [count for hold in holds for behind_ms, count in hold.earlier_rows if behind_ms is None]
        return retained_ms, min(counted, first - max(always, default=0))


def needed(holds: Sequence[Hold], now_ms: int | None, retain_ms: int) -> tuple[int, int] | None:
    """(rows from this instant on, so many of the last), whatever rows there are; None: all of them."""
    instants = [hold.now_ms for hold in holds if hold.now_ms is not None]
    if now_ms is None or len(instants) < len(holds) or any(at_ms != now_ms for at_ms in instants):
        return None
    if any(hold.earlier_rows for hold in holds):
        return None
    reach_ms = max((hold.reach_ms for hold in holds), default=0)
    return now_ms - max(reach_ms, retain_ms), max((hold.rows for hold in holds), default=0)
