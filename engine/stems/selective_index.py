"""The selective cohort: predicates that few rows can satisfy, reached from the rows' keys.

Each term of such a predicate is reached through one attribute, by the keys or intervals it allows there; a
row looks its keys up and only the candidates it finds are tested, so a row costs what it has candidates,
however many predicates stand. Matches come as pairs (row, slot).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from engine.domains.batch_keys import BatchKeys
from engine.domains.domain import Domain
from engine.kernels.candidates import RowKeys
from engine.model.batch import MATCHED_ROWS_MAX, Int64Array
from engine.stems.access_path import AccessPath
from engine.stems.region_store import WAY_IN, RegionStore
from engine.store.matches.row_slots import NO_PAIRS, RowSlots


class SelectiveIndex:
    """See the module."""

    def __init__(self, columns: int, store: RegionStore) -> None:
        self.paths: dict[tuple[int, bool], AccessPath] = {}
        self.count = 0
        self._store = store
        self._several: set[int] = set()
        self._uses = np.zeros(columns, np.int64)
        self._keys = np.empty((0, MATCHED_ROWS_MAX), np.int64)
        self._null = np.empty((0, MATCHED_ROWS_MAX), np.bool_)
        self._has_null = np.zeros(columns, np.bool_)

    def add(self, slots: Int64Array) -> None:
        """Slots that stand in the store, their ways in marked."""
        owners, rows = self._store.of(slots)
        np.add.at(self._uses, rows.attribute, 1)
        marked = (rows.flags & WAY_IN) > 0
        points = self._points(owners[marked], rows.term[marked], rows.low[marked] == rows.last[marked])
        attributes = rows.attribute[marked]
        for index in np.unique(attributes).tolist():
            for kind in (True, False):
                mine = (attributes == index) & (points == kind)
                if mine.any():
                    path = self.paths.get((index, kind))
                    if path is None:
                        path = self.paths[index, kind] = AccessPath(index, kind, self._store)
                    path.add(np.unique(owners[marked][mine]))
        self._several.update(slots[self._store.terms[slots] > 1].tolist())
        self.count += len(slots)

    def _points(
        self, owners: Int64Array, terms: npt.NDArray[np.uint8], single: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """bool[n], for each row of a way in, in the store's order: whether all intervals of the way are
        single keys.
        """
        if single.all() or not len(single):
            return single
        group = np.cumsum(np.r_[True, (owners[1:] != owners[:-1]) | (terms[1:] != terms[:-1])]) - 1
        whole = np.ones(int(group[-1]) + 1, np.bool_)
        whole[group[~single]] = False
        of_each: npt.NDArray[np.bool_] = whole[group]
        return of_each

    def drop(self, slot: int) -> None:
        """A slot goes, while the store has it still."""
        rows = self._store.of_slot(slot)
        np.subtract.at(self._uses, rows.attribute, 1)
        for name in self.ways_in(slot):
            path = self.paths[name]
            path.drop(slot)
            if not path.members:
                del self.paths[name]
        self._several.discard(slot)
        self.count -= 1

    def ways_in(self, slot: int) -> set[tuple[int, bool]]:
        """The paths that lead to a slot: (attribute, by points)."""
        rows = self._store.of_slot(slot)
        marked = np.flatnonzero(rows.flags & WAY_IN)
        term = rows.term[marked]
        points = self._points(np.zeros(len(marked), np.int64), term, rows.low[marked] == rows.last[marked])
        return set(zip(rows.attribute[marked].tolist(), points.tolist(), strict=True))

    def rebuild(self) -> None:
        """Constants moved: every entry anew."""
        for path in self.paths.values():
            path.rebuild(path.slots())

    def match(self, batch: BatchKeys) -> RowSlots:
        """The pairs of a batch of at most MATCHED_ROWS_MAX rows. O(rows * paths + candidates)."""
        if not self.paths or not batch.n:
            return NO_PAIRS
        keys = self._take_keys(batch)
        found: list[RowSlots] = []
        for path in self.paths.values():
            runs, most = path.candidates(batch, keys)
            if not most:
                continue
            rows, slots = np.empty(most, np.uint16), np.empty(most, np.int32)
            made = path.accepted(runs, keys, rows, slots)
            if made:
                found.append(RowSlots(rows[:made], slots[:made]))
        if not found:
            return NO_PAIRS
        pairs = found[0]
        if len(found) > 1:
            pairs = RowSlots(
                np.concatenate([p.rows for p in found]), np.concatenate([p.slots for p in found])
            )
        if self._several:
            merged = np.unique(pairs.rows.astype(np.int64) << 32 | pairs.slots)
            return RowSlots((merged >> 32).astype(np.uint16), (merged & 0xFFFFFFFF).astype(np.int32))
        if len(found) > 1:
            return pairs.take(np.argsort(pairs.rows, kind="stable"))
        return pairs

    def _take_keys(self, batch: BatchKeys) -> RowKeys:
        if not len(self._keys):
            self._keys = np.empty((len(self._uses), MATCHED_ROWS_MAX), np.int64)
            self._null = np.empty((len(self._uses), MATCHED_ROWS_MAX), np.bool_)
        for index in np.flatnonzero(self._uses).tolist():
            self._keys[index, : batch.n] = batch.keys(index)
            valid = batch.valid(index)
            self._has_null[index] = valid is not None
            if valid is not None:
                np.logical_not(valid, out=self._null[index, : batch.n])
        return RowKeys(self._keys, self._null, self._has_null)

    def nbytes(self) -> int:
        return sum(path.nbytes() for path in self.paths.values())

    def _check(self, slots: Iterable[int], domains: Mapping[int, Domain]) -> None:
        """slots: those that should be in it."""
        standing = np.array(sorted(slots), np.int64)
        assert len(standing) == self.count
        owners, rows = self._store.of(standing)
        uses = np.bincount(rows.attribute, minlength=len(self._uses))
        assert (uses == self._uses).all()
        assert set(rows.attribute.tolist()) <= set(domains)
        ways = {
            (slot, term)
            for slot, term in zip(owners.tolist(), rows.term.tolist(), strict=True)
            if slot in set(standing.tolist())
        }
        marked = (rows.flags & WAY_IN) > 0
        reached = set(zip(owners[marked].tolist(), rows.term[marked].tolist(), strict=True))
        assert ways == reached
        assert {s for path in self.paths.values() for s in path.slots().tolist()} == set(owners.tolist())
        for name, path in self.paths.items():
            assert path.members
            assert all(name in self.ways_in(slot) for slot in path.slots().tolist())
            path._check()
        assert self._several == set(standing[self._store.terms[standing] > 1].tolist())
