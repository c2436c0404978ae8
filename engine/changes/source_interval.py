"""The transition of one source, and the scale in which the instants of lives are told.

An instant t, in ms, has two *halves*: at 2t is done what time does, with what was retained before, at 2t + 1
retention takes what it takes. So whoever reads the changes can tell one from the other: nothing comes into a
stream (ISTREAM) because something else is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import NEVER, SourceTransition
from engine.kernels import halves
from engine.kernels.halves import FAR
from engine.model.batch import BoolArray, Int64Array
from engine.model.limits import Limits
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt


@dataclass(frozen=True, slots=True)
class SourceInterval:
    """since_ms, until_ms: of the transition, ms."""

    at_source: SourceTransition
    since_ms: int
    until_ms: int
    limits: Limits

    @property
    def interval(self) -> Interval:
        """In the scale of lives."""
        return interval_of(self.since_ms, self.until_ms)

    def time(self, instants: Int64Array) -> Int64Array:
        """Instants in ms at which time does something, in the scale of lives."""
        return doubled(instants)

    def retention(self, instants: Int64Array) -> Int64Array:
        """Instants in ms at which retention does, in the scale of lives."""
        return doubled(instants, 1)

    @property
    def end(self) -> int:
        """When retention takes what is only known to be gone after the interval, in the scale of lives."""
        return 2 * self.until_ms + 1

    def gone(self, timestamps: Int64Array) -> Int64Array | None:
        """When retention takes rows of these timestamps, in the scale of lives, FOREVER where it does not on
        the interval; None: it takes none.
        """
        if self.at_source.retained_to_ms is None:
            return None
        gone = self.at_source.released_ms(timestamps, self.until_ms)
        if self.since_ms != NEVER:
            gone = np.maximum(gone, self.since_ms + 1)
        return self.retention(gone)

    def temporal(
        self, relation: Relation, begins: Int64Array, ends: Int64Array, gone: Int64Array | None = None
    ) -> TemporalRelation:
        """Rows that come and go with time at these instants, in ms, or are gone before; without those that
        are never there.
        """
        begins, ends = self.time(begins), self.time(ends)
        if gone is not None:
            ends = np.minimum(ends, gone)
        return TemporalRelation(relation, begins, ends).where(begins < ends)

    def as_of(self, instant: int) -> ScanAt:
        """The source at an instant of the interval or at its beginning, in halves. O(log rows)."""
        at = self.at_source.at
        if instant == NEVER or at.now_ms is None:
            return replace(at, now_ms=None, end=at.rows.base)
        at_ms, forgets = (instant >> 1, bool(instant & 1)) if instant > -FAR else (instant, True)
        retained_ms = self._retained_ms(at_ms if forgets else at_ms - 1)
        if not self.at_source.moves:
            return replace(at, retained_from_ms=retained_ms)
        end = min(at.end, at.rows.first_at_or_after(at_ms + 1))
        return replace(at, now_ms=min(at.now_ms, at_ms), end=end, retained_from_ms=retained_ms)

    def _retained_ms(self, at_ms: int) -> int | None:
        """The first instant that is retained then."""
        at_source = self.at_source
        before_ms, after_ms = at_source.at.retained_from_ms, at_source.retained_to_ms
        if after_ms is None or at_ms <= self.since_ms:
            return before_ms
        if at_ms < self.until_ms:
            if at_source.retention_ms is None:
                return before_ms
            after_ms = min(after_ms, at_ms - at_source.retention_ms)
        return after_ms if before_ms is None else max(before_ms, after_ms)


def interval_of(since_ms: int, until_ms: int) -> Interval:
    """An interval given in ms, in the scale of lives."""
    return Interval(since_ms if since_ms < -FAR else 2 * since_ms + 1, 2 * until_ms + 1)


def doubled(instants: Int64Array, half: int = 0) -> Int64Array:
    """From ms to halves; NEVER, FOREVER and what is next to them stay."""
    out = np.empty(len(instants), np.int64)
    halves.double(instants, half, out)
    return out


def halved(instants: Int64Array) -> Int64Array:
    """From the first halves back to ms."""
    out = np.empty(len(instants), np.int64)
    halves.halve(instants, out)
    return out


def by_retention(instants: Int64Array) -> BoolArray:
    """bool[n]: which are second halves."""
    told: BoolArray = instants & 1 == 1
    if told.any():
        told &= (instants > -2 * FAR) & (instants < 2 * FAR)
    return told
