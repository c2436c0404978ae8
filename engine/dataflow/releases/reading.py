"""Facts about streams, read off the rows that the queries of a graph have seen."""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.dataflow.releases.facts import LowBound, OpenKeys
from engine.dataflow.releases.release import Below, ClosedKeys
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.operators.gather import rows_at
from engine.operators.keys import with_one_zero
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt


class _Reading:
    """How far the rows of a stream were read."""

    def __init__(self) -> None:
        self._seen: int | None = None

    def unread(self, at: ScanAt) -> tuple[int, Relation, bool]:
        """(ordinal of the first, rows, whether some before it were not read), of those that came since."""
        seen = at.rows.base if self._seen is None else self._seen
        first = max(seen, at.rows.base)
        self._seen = max(seen, at.end)
        places = [(part, np.arange(low, high)) for part, low, high in at.rows.ranges(first, at.end)]
        return first, rows_at(at.rows.schema, places), first > seen


class KeysOver:
    """Which keys of a clustered stream are over. One writer."""

    def __init__(self, over: ClosedKeys, keys: Keys, *, nulls: bool = False) -> None:
        """nulls: NULL is a key like others; else a row with one has no key."""
        self._over = over
        self._nulls = nulls
        self._reading = _Reading()
        self._open = OpenKeys(keys, over.within_rows)

    def advance(self, at: ScanAt) -> Int32Array:
        """The numbers of keys that are over by now, and were not told; to be given back."""
        first, relation, missed = self._reading.unread(at)
        if missed:
            self._open.passed(first)
        columns = [with_one_zero(relation.columns[place]) for place in self._over.places]
        usable: BoolArray = np.ones(len(relation), np.bool_)
        for column in columns if not self._nulls else ():
            usable &= column.there()
        self._open.read(KeyValues(columns, usable), first)
        return self._open.over(at.end)

    @property
    def nbytes(self) -> int:
        return self._open.nbytes

    def _check(self) -> None:
        self._open._check()


class Frontier:
    """Below which value no row of an ordered stream comes any more. One writer."""

    def __init__(self, below: Below) -> None:
        self.below = below
        self._reading = _Reading()
        self._bound = LowBound(below.within_rows)

    def advance(self, at: ScanAt) -> int | None:
        """The bound; None: none is known."""
        _, relation, _ = self._reading.unread(at)
        self._bound.read(relation.columns[self.below.place])
        return self._bound.value

    @property
    def value(self) -> int | None:
        """The bound, as far as was advanced."""
        return self._bound.value

    @property
    def nbytes(self) -> int:
        return self._bound.nbytes


def ends_behind(at: ScanAt, instants: Int64Array) -> Int64Array:
    """The ordinals of the first rows of a stream behind some instants."""
    if not len(instants):
        return instants
    first = at.rows.first_at_or_after(int(instants.min()))
    parts = [part.timestamp[low:high] for part, low, high in at.rows.ranges(first, at.end)]
    timestamps = np.concatenate([np.empty(0, np.int64), *parts])
    return first + timestamps.searchsorted(instants, side="right")
