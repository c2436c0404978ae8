"""Row lists by slot: the matches of selective slots over (a piece of) one segment.

Immutable. 2 bytes a match, and 8 a slot that has some or is spoken for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import candidates
from engine.model.batch import BoolArray, Int32Array

RowNumbers = npt.NDArray[np.uint16]

_ANY = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class SlotLists:
    """slots: ascending; those whose matches among rows below ``upto`` are here and nowhere older.

    starts: int32[slots + 1], where each list begins in rows: uint16, places in the segment, ascending, on
    disk where ``is_spilled``.
    """

    slots: Int32Array
    starts: Int32Array
    rows: RowNumbers
    upto: int
    is_spilled: bool = False

    def find(self, slot: int) -> RowNumbers | None:
        """The list of a slot; None if it is not spoken for. O(log slots)."""
        place = int(self.slots.searchsorted(slot))
        if place == len(self.slots) or self.slots[place] != slot:
            return None
        return self.rows[self.starts[place] : self.starts[place + 1]]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.slots.nbytes + self.starts.nbytes + (0 if self.is_spilled else self.rows.nbytes)

    def pairs(self) -> tuple[RowNumbers, Int32Array]:
        """(rows, slots), slot by slot."""
        return self.rows, np.repeat(self.slots, np.diff(self.starts))

    def _check(self) -> None:
        assert (np.diff(self.slots) > 0).all()
        assert len(self.starts) == len(self.slots) + 1
        assert self.starts[0] == 0
        assert self.starts[-1] == len(self.rows)
        for first, last in zip(self.starts[:-1], self.starts[1:], strict=True):
            assert (np.diff(self.rows[first:last].astype(np.int64)) > 0).all()
        assert not len(self.rows) or self.rows.max() < self.upto


def lists_of(rows: RowNumbers, slots: Int32Array, spoken_for: Int32Array | None, upto: int) -> SlotLists:
    """Pairs, the rows of each slot ascending, as lists.

    spoken_for: ascending, the slots of all pairs and maybe others; None: those that have pairs.
    O(pairs + largest slot), or O(pairs log slots + slots) where slots are given.
    """
    if spoken_for is not None:
        local = np.searchsorted(spoken_for, slots).astype(np.int32)
        count = len(spoken_for)
    else:
        local = slots
        count = int(slots.max(initial=-1)) + 1
    starts = np.zeros(count + 1, np.int64)
    out = np.empty(len(rows), np.uint16)
    candidates.lists_by_slot(rows, local, starts, out)
    if spoken_for is not None:
        return SlotLists(spoken_for, starts.astype(np.int32), out, upto)
    present = np.flatnonzero(np.diff(starts))
    kept = np.concatenate([starts[present], starts[-1:]]).astype(np.int32)
    return SlotLists(present.astype(np.int32), kept, out, upto)


def merged(
    runs: Sequence[SlotLists],
    standing: BoolArray | None = None,
    log: tuple[RowNumbers, Int32Array] | None = None,
) -> SlotLists:
    """Several, the newest last, as one that speaks for all their slots.

    standing: by slot; those that do not stand any more are left out. log: pairs, rows ascending, where the
    matches above a run's ``upto`` are.
    """
    later = _ANY
    rows: list[RowNumbers] = []
    slots: list[Int32Array] = []
    for run in reversed(runs):
        its_rows, its_slots = run.pairs()
        if log is not None:
            first = int(log[0].searchsorted(np.uint16(run.upto))) if run.upto < 65_536 else len(log[0])
            mine = first + np.flatnonzero(np.isin(log[1][first:], run.slots))
            its_rows = np.concatenate([its_rows, log[0][mine]])
            its_slots = np.concatenate([its_slots, log[1][mine]])
        if len(later):
            keep = ~np.isin(its_slots, later)
            its_rows, its_slots = its_rows[keep], its_slots[keep]
        rows.append(its_rows)
        slots.append(its_slots)
        later = np.union1d(later, run.slots).astype(np.int32)
    all_rows, all_slots = np.concatenate(rows), np.concatenate(slots)
    if standing is not None:
        later = later[standing[later]]
        keep = standing[all_slots]
        all_rows, all_slots = all_rows[keep], all_slots[keep]
    return lists_of(all_rows, all_slots, later, max(run.upto for run in runs))
