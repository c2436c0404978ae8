"""How many rows of a source may be shed now, so that no query loses a larger share than it allows.

Queries over a source allow *levels*, shares in parts per million. With each row that is read a level earns
its share of a row, and each row that is shed for it costs one; what is saved up is bounded, so that a run
after a quiet time is no longer than that of HORIZON_ROWS rows. Rows shed at a level are shed for all levels
at or above it. So of all rows since the first at most the share, and of any window of them at most that and
what was saved up, are shed for a query.

Pure. O(levels) a call.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.shed import LEVEL_MAX

HORIZON_ROWS = 1_000_000


class LossCredit:
    """Keeps the credit of the levels that the queries over one source allow."""

    def __init__(self) -> None:
        self._credit: dict[int, float] = {}
        """By level, ascending: rows that may be shed."""

    def allow(self, levels: Iterable[int]) -> None:
        """The levels that there are now, each above 0; one that comes has saved nothing."""
        wanted = sorted(levels)
        if wanted != list(self._credit):
            self._credit = {level: self._credit.get(level, 0.0) for level in wanted}

    def level_for(self, rows: int) -> int | None:
        """The lowest level at which so many rows more may be shed; None: at none."""
        found = None
        for level in sorted(self._credit, reverse=True):
            if self._credit[level] + rows * level / LEVEL_MAX < rows:
                break
            found = level
        return found

    def passed(self, rows: int, level: int | None) -> None:
        """So many rows came, and were shed at a level; None: they were not."""
        for one, credit in self._credit.items():
            share = one / LEVEL_MAX
            cost = rows if level is not None and level <= one else 0
            self._credit[one] = min(credit + rows * share - cost, HORIZON_ROWS * share)
