"""Whether grouped filters are one fused pass over all rows, or a module for each attribute.

Fused, every row meets every attribute's constants, in one pass that keeps nothing in between. As modules, a
row that nobody wants any more is spared the rest, but each visit writes lineage and reads it again. So where
most rows survive fusing is best, and where most die early it depends on what an attribute costs: that is
measured. The way that seems worse is tried now and then, the less often the worse it was, so that trials take
a fiftieth of the work.
"""

from __future__ import annotations

from collections import deque

FUSING = ("auto", "fused", "split")
"""The first is the default."""

SURVIVING_MAX = 0.5
"""With a greater share of rows surviving, modules of their own are not even tried."""

WORDS_MAX = 64
"""With more words of queries, some query wants nearly every row."""

ROWS_MIN = 512
"""Smaller batches are fused: their cost is that of calls."""

FIRST_FUSED, FIRST_SPLIT = 6, 10
"""Batches that a way takes to begin with, before the two are compared; modules find their order in those."""

TRIAL = 2
"""Batches of a trial: the first brings tables into the caches, the last is measured."""

TRIALS_SHARE = 1 / 50
TRIAL_MIN, TRIAL_MAX = 16, 512
"""Batches between two trials."""

MEASURED = 5
"""The least of the last so many measurements counts: what else runs on the machine only ever adds to one."""


class Fusing:
    """Decides for a batch, and is told what came of it. O(1).

    mode: one of FUSING, may be set between batches. surviving: share of rows that some query wants, of those
    that came lately, as far as it is known.
    """

    def __init__(self) -> None:
        self.mode = FUSING[0]
        self.surviving = 1.0
        self._measured: dict[bool, deque[float]] = {way: deque(maxlen=MEASURED) for way in (False, True)}
        self._runs = {False: 0, True: 0}
        self._until_trial = 0
        self._on_trial = 0

    def splits(self, rows: int, words: int, attributes: int) -> bool:
        """Whether the filters of the next batch are modules of their own."""
        if self.mode != "auto":
            return self.mode == "split" and words > 0
        if rows < ROWS_MIN or words > WORDS_MAX or attributes < 2 or self._runs[False] < FIRST_FUSED:
            return False
        better = self._runs[True] >= FIRST_SPLIT and self._cost(True) < self._cost(False)
        if self.surviving > SURVIVING_MAX and not better:
            self._on_trial = 0
            return False
        if self._runs[True] < FIRST_SPLIT:
            return True
        if self._on_trial:
            self._on_trial -= 1
            return not better
        if not self._until_trial:
            self._until_trial = self._interval()
        self._until_trial -= 1
        if not self._until_trial:
            self._on_trial = TRIAL - 1
            return not better
        return better

    def _cost(self, split: bool) -> float:
        """Of a row."""
        return min(self._measured[split])

    def _interval(self) -> int:
        better, worse = sorted((self._cost(False), self._cost(True)))
        more = TRIAL * (worse / max(better, 1e-9) - 1)
        return int(min(TRIAL_MAX, max(TRIAL_MIN, more / TRIALS_SHARE)))

    def observe(self, split: bool, rows: int, cost: float) -> None:
        """A batch of so many rows went one way or the other."""
        if rows < ROWS_MIN:
            return
        self._runs[split] += 1
        if self._runs[split] == 1 or self._on_trial:
            return
        self._measured[split].append(cost / rows)
