"""Where the constants of many predicates cut an attribute's domain, and which piece each row is in."""

from __future__ import annotations

from hashlib import blake2b
from weakref import WeakValueDictionary

import numpy as np

from engine.domains.batch_keys import BatchKeys
from engine.domains.domain import KEY_MAX
from engine.kernels import intervals
from engine.kernels.intervals import Pieces
from engine.model.batch import Int64Array

LOOKUP_SPAN_MAX = 4_096
"""Cuts that lie within this span are looked up in a table, 8 KiB at most."""

BISECTED_MAX = 64
"""Fewer cuts than this are bisected, if there is no table for them; more are merged with the sorted batch."""

LOOKED_UP_WORK, BISECTED_WORK, MERGED_WORK = 1.5, 10.0, 60.0
"""The work to find the piece of a row: by table, by bisection, by merging; in about nanoseconds."""


class Cuts:
    """starts: int64, ascending, the first keys of pieces 1, 2, ...; the last piece is NULL's."""

    __slots__ = ("__weakref__", "index", "lookup", "lowest", "pieces", "starts")

    @property
    def work(self) -> float:
        """The work to find the piece of a row, in about nanoseconds."""
        if self.lookup is not None:
            return LOOKED_UP_WORK
        return BISECTED_WORK if len(self.starts) < BISECTED_MAX else MERGED_WORK

    def __init__(self, index: int, starts: Int64Array) -> None:
        self.index = index
        self.starts = starts
        self.pieces = len(starts) + 2
        self.lookup: Pieces | None = None
        self.lowest = 0
        if not len(starts):
            self.lookup = np.zeros(1, np.uint16)
        elif int(starts[-1]) - int(starts[0]) < LOOKUP_SPAN_MAX and int(starts[-1]) < KEY_MAX:
            self.lowest = int(starts[0]) - 1  # a start is above the least key of all
            span = np.arange(self.lowest, int(starts[-1]) + 1)
            self.lookup = np.searchsorted(starts, span, "right").astype(np.uint16)

    def codes(self, batch: BatchKeys) -> Pieces:
        """The piece of each row, uint16[n]. O(n)."""
        codes = batch.codes.get(self)
        if codes is None:
            codes = np.empty(batch.n, np.uint16)
            if self.lookup is not None:
                intervals.pieces_by_lookup(batch.keys(self.index), self.lowest, self.lookup, codes)
            elif len(self.starts) < BISECTED_MAX:
                intervals.pieces_by_bisection(batch.keys(self.index), self.starts, codes)
            else:
                order, ascending = batch.order(self.index)
                intervals.pieces_by_merge(order, ascending, self.starts, codes)
            valid = batch.valid(self.index)
            if valid is not None:
                codes[~valid] = self.pieces - 1
            batch.codes[self] = codes
        return codes


class CutsPool:
    """Equal cuts are one object, so that many blocks of queries find a row's piece once."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[tuple[int, int, bytes], Cuts] = WeakValueDictionary()

    def cuts(self, index: int, starts: Int64Array) -> Cuts:
        """The cuts of an attribute at these starts."""
        name = (index, len(starts), blake2b(starts.tobytes(), digest_size=16).digest())
        cuts = self._held.get(name)
        if cuts is None:
            cuts = self._held[name] = Cuts(index, starts)
        return cuts
