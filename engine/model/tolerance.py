"""What a query allows to be less than exact, in its text or as options of its registration.

A query that allows nothing stays exact: it may lag, it never loses a row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Of a whole query. max_fp, max_fn: shares of wrong and of missing rows, in [0, 1]; max_error: the 95 %
    interval of an aggregate relative to its value, above 0. None: nothing of the kind is allowed.

    What a scan allows besides stands in it: how far its window may shrink, its sampling rate fall (DOWN TO).
    """

    max_fp: float | None = None
    max_fn: float | None = None
    max_error: float | None = None

    def __bool__(self) -> bool:
        return any(one is not None for one in (self.max_fp, self.max_fn, self.max_error))


EXACT = Tolerance()
