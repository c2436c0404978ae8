"""Rows that were found for one query, in any order, as readers get them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.model.batch import Int64Array

RUNS_MAX = 16
"""More runs than this are merged."""


class RowsFound:
    """Runs of ordinals, each ascending; no ordinal comes twice."""

    __slots__ = ("_read", "_runs")

    def __init__(self, rows: Int64Array | None = None) -> None:
        self._runs: list[Int64Array] = [] if rows is None or not len(rows) else [rows]
        self._read: Int64Array | None = None

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, rows: Int64Array) -> None:
        """More of them, ascending. O(rows), but for a merge now and then."""
        if not len(rows):
            return
        self._read = None
        self._runs.append(rows)
        if len(self._runs) > RUNS_MAX:
            self._runs = [_merged(self._runs)]

    def drop_below(self, ordinal: int) -> None:
        """Rows before this ordinal are in no answer any more."""
        if not self._runs or min(int(run[0]) for run in self._runs) >= ordinal:
            return
        self._read = None
        kept = [run[run.searchsorted(ordinal) :] for run in self._runs]
        self._runs = [run for run in kept if len(run)]

    def read(self) -> Int64Array:
        """All rows found, ascending; the same object until others come."""
        if self._read is None:
            merged = _merged(self._runs)
            self._runs = [merged] if len(merged) else []
            self._read = merged
        return self._read

    @property
    def nbytes(self) -> int:
        """Bytes of the runs."""
        return sum(run.nbytes for run in self._runs)


def _merged(runs: Sequence[Int64Array]) -> Int64Array:
    if len(runs) == 1:
        return runs[0]
    merged = np.concatenate(runs) if runs else np.empty(0, np.int64)
    merged.sort(kind="stable")
    return merged
