"""How long a shard waits before it takes up more, where records come few at a time.

A transaction costs the same for one record as for hundreds. Records that come after a few were taken up are
therefore taken up together, some ms after those. The first after a pause wait for nothing; where many come,
or more wait than were taken up, nobody waits.

Pure: clocks are passed in. O(1).
"""

from __future__ import annotations

ROWS_MAX = 1_024
"""Least rows for which a transaction costs less than the rows do."""


class Linger:
    """Says how long records of one shard wait for others. linger_s: the time from few records to the next."""

    def __init__(self, linger_s: float) -> None:
        self._linger_s = linger_s
        self._until_s = 0.0
        self._left = False

    def takes(self) -> None:
        """Nothing waits, or some of it is taken up."""
        self._left = False

    def leaves(self) -> bool:
        """Something that came is left for now; whether for the first time since some was taken."""
        first, self._left = not self._left, True
        return first

    def took(self, rows: int, began_s: float, *, lagging: bool) -> None:
        """Note that rows were taken up. lagging: more wait."""
        self._until_s = began_s + self._linger_s if 0 < rows < ROWS_MAX and not lagging else 0.0

    def left_s(self, now_s: float) -> float:
        """How long records that have come meanwhile still wait."""
        return max(0.0, self._until_s - now_s)
