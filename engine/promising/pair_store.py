"""Pairs that a group found, held as runs in order.

Runs are merged as in a log-structured tree, so that each pair is moved O(log pairs) times; readers take the
runs as they are. Pairs with a part that left the windows go.
"""

from __future__ import annotations

import numpy as np

from engine.kernels import promising
from engine.model.batch import Int64Array
from engine.promising.found import FoundPairs, PairRun

MERGED_AT = 2
"""A run is merged with the next one unless it has more than so many times its pairs."""


class PairStore:
    """Pairs of ordinals, each once."""

    def __init__(self, pairs: PairRun | None = None, known: PairRun | None = None) -> None:
        """pairs: those that are held; known: of them those that may be found once more."""
        self._runs = [pairs] if pairs is not None and len(pairs) else []
        self.known = known or PairRun.merged(())
        self._view: FoundPairs | None = None

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, left: Int64Array, right: Int64Array) -> int:
        """Put pairs in that were found, in any order, each once; returns how many are new."""
        if len(self.known):
            known = np.empty(len(left), np.bool_)
            promising.known_pairs(left, right, self.known.left, self.known.right, known)
            left, right = left[~known], right[~known]
        self._put(PairRun.sorted(left, right))
        return len(left)

    def _put(self, pairs: PairRun) -> None:
        """Hold pairs that are not held."""
        if not len(pairs):
            return
        runs = self._runs
        runs.append(pairs)
        while len(runs) > 1 and len(runs[-2]) <= MERGED_AT * len(runs[-1]):
            runs[-2:] = [PairRun.merged(runs[-2:])]
        self._view = None

    def know(self) -> None:
        """All pairs that are held may be found once more."""
        self.known = self.view().pairs()

    def drop_below(self, left: int, right: int) -> None:
        """Pairs with a part below these ordinals go. O(pairs)."""
        self._runs = [run for run in (each.from_floors(left, right) for each in self._runs) if len(run)]
        self.known = self.known.from_floors(left, right)
        self._view = None

    def view(self) -> FoundPairs:
        """As they stand; the same object until something changes."""
        if self._view is None:
            self._view = FoundPairs(tuple(self._runs))
        return self._view

    @property
    def nbytes(self) -> int:
        return sum(run.left.nbytes + run.right.nbytes for run in (*self._runs, self.known))

    def _check(self) -> None:
        pairs = self.view().pairs()
        order = np.lexsort((pairs.right, pairs.left))
        assert (order == np.arange(len(pairs))).all()
        same = (np.diff(pairs.left) == 0) & (np.diff(pairs.right) == 0)
        assert not same.any()
