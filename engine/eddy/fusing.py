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
"""Batches before the first trial, and of it: modules find their order in those."""

TRIAL = 3
"""Batches of a later one: the first brings tables into the caches, the others are measured."""

TRIALS_SHARE = 1 / 50
TRIAL_MIN, TRIAL_MAX = 16, 512
"""Batches between two trials."""

MEASURED = 5
"""The least of the last so many measurements counts: what else runs on the machine only ever adds to one."""


class Fusing:
    """Decides for a batch, and is told what came of it. O(1).

    mode: one of FUSING, may be set between batches. surviving: share of rows that some query wants, of those
    that came lately, as far as it is known. The way in use changes at the end of a trial alone, when the
    other one cost less than this one did just before, so that both are measured on the same rows and the same
    machine.
    """

    def __init__(self) -> None:
        self.mode = FUSING[0]
        self.surviving = 1.0
        self._split = False
        self._usual: deque[float] = deque(maxlen=MEASURED)
        self._tried: deque[float] = deque(maxlen=MEASURED)
        self._until_trial = FIRST_FUSED
        self._trial = FIRST_SPLIT
        self._left = 0

    def splits(self, rows: int, words: int, attributes: int) -> bool:
        """Whether the filters of the next batch are modules of their own."""
        if self.mode != "auto":
            return self.mode == "split" and words > 0
        if rows < ROWS_MIN or words > WORDS_MAX or attributes < 2:
            return False
        if self.surviving > SURVIVING_MAX and not self._split:
            self._left = 0
            return False
        if not self._left and self._until_trial <= 0 and self._usual:
            self._left = self._trial
            self._tried.clear()
        return self._split != (self._left > 0)

    def observe(self, split: bool, rows: int, cost: float) -> None:
        """A batch of so many rows went one way or the other."""
        if rows < ROWS_MIN or self.mode != "auto":
            return
        if split == self._split:
            self._until_trial -= 1
            self._usual.append(cost / rows)
        elif self._left:
            self._left -= 1
            if self._left < self._trial - 1:
                self._tried.append(cost / rows)
            if not self._left:
                self._decide()

    def _decide(self) -> None:
        usual, tried = min(self._usual), min(self._tried)
        if tried < usual:
            self._split = not self._split
            self._usual = self._tried.copy()
        more = TRIAL * (max(usual, tried) / max(min(usual, tried), 1e-9) - 1)
        self._until_trial = int(min(TRIAL_MAX, max(TRIAL_MIN, more / TRIALS_SHARE)))
        self._trial = TRIAL
