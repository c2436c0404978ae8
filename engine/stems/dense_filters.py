"""The dense cohort: every slot has a bit, computed for every row.

A slot's *place* is its bit: (place & 63) of word (place >> 6). Places are given lowest first and stay
compact, since each 64 of them cost 8 bytes a row. They are compiled in blocks of 512
(:mod:`engine.stems.grouped_filter`); what changes marks its block, and the next batch compiles the marked
ones: about 0.3 ms each, whatever else stands.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.domains.batch_keys import BatchKeys
from engine.kernels import bitmaps
from engine.model.batch import Int32Array
from engine.model.source import Schema
from engine.stems.cuts import CutsPool
from engine.stems.grouped_filter import (
    BLOCK_INTERVALS_MAX,
    BLOCK_SLOTS,
    BLOCK_WORDS,
    SlotBlock,
    compile_block,
)
from engine.stems.region_store import RegionStore
from engine.store.matches.segment_bits import BitTarget


@dataclass(slots=True)
class _Block:
    """BLOCK_SLOTS places. intervals: of the slots there; compiled: None where nobody has a place."""

    intervals: int = 0
    compiled: SlotBlock | None = None


@dataclass(frozen=True, slots=True)
class RowCost:
    """What :meth:`DenseFilters.apply` takes of a row. work: in about nanoseconds; attributes: how many it
    looks at.
    """

    work: float = 0.0
    attributes: int = 0


class DenseFilters:
    """See the module. ``compilations`` counts blocks compiled. ``version``: another one, other blocks."""

    def __init__(self, store: RegionStore) -> None:
        self.compilations = 0
        self.version = 0
        self.cost = RowCost()
        self.count = 0
        self.slot_at: Int32Array = np.full(BLOCK_SLOTS, -1, np.int32)
        self._store = store
        self._end = 0
        self._free: list[int] = []
        self._blocks = [_Block()]
        self._marked: set[int] = set()
        self._pool = CutsPool()
        self._scratch = np.empty(bitmaps.BLOCK_ROWS, np.uint64)

    @property
    def words(self) -> int:
        """How many word columns the places so far take."""
        return (self._end + 63) >> 6

    def add(self, slot: int) -> int:
        """A place for a slot that stands in the store. O(log places)."""
        intervals = int(self._store.count[slot])
        place = self._place(intervals)
        self.slot_at[place] = slot
        self._blocks[place // BLOCK_SLOTS].intervals += intervals
        self._marked.add(place // BLOCK_SLOTS)
        self.count += 1
        return place

    def _place(self, intervals: int) -> int:
        """The lowest free place of a block that has room for so many intervals more."""
        passed: list[int] = []
        found = -1
        while self._free and found < 0:
            place = heapq.heappop(self._free)
            if self._has_room(place // BLOCK_SLOTS, intervals):
                found = place
            else:
                passed.append(place)
        for place in passed:
            heapq.heappush(self._free, place)
        if found >= 0:
            return found
        if not self._has_room(self._end // BLOCK_SLOTS, intervals):
            begin = -(-self._end // BLOCK_SLOTS) * BLOCK_SLOTS
            for place in range(self._end, begin):
                heapq.heappush(self._free, place)
            self._end = begin
        self._end += 1
        if self._end > len(self.slot_at):
            self.slot_at = np.concatenate([self.slot_at, np.full(len(self.slot_at), -1, np.int32)])
        while self._end > len(self._blocks) * BLOCK_SLOTS:
            self._blocks.append(_Block())
        return self._end - 1

    def _has_room(self, block: int, intervals: int) -> bool:
        if block >= len(self._blocks):
            return True
        held = self._blocks[block].intervals
        return not held or held + intervals <= BLOCK_INTERVALS_MAX

    def drop(self, place: int, intervals: int, *, free: bool = True) -> None:
        """A slot with so many intervals goes; ``free``: its place may be given again. O(log places)."""
        number = place // BLOCK_SLOTS
        self.slot_at[place] = -1
        block = self._blocks[number]
        block.intervals -= intervals
        self.count -= 1
        if block.compiled is not None:
            block.compiled.drop(place % BLOCK_SLOTS)
        if not self._held(number):
            block.compiled = None
            self.version += 1
            self._marked.discard(number)
        if free:
            self.release(place)

    def _held(self, block: int) -> bool:
        return bool((self.slot_at[block * BLOCK_SLOTS : (block + 1) * BLOCK_SLOTS] >= 0).any())

    def release(self, place: int) -> None:
        """A dropped slot's place may be given again."""
        heapq.heappush(self._free, place)

    def trim(self) -> None:
        """Give up words at the end that no slot has a place in. Only where nothing is kept of them."""
        held = np.flatnonzero(self.slot_at[: self._end] >= 0)
        end = int(held[-1]) + 1 if len(held) else 0
        if end == self._end or sum(place >= end for place in self._free) < self._end - end:
            return
        self._free = [place for place in self._free if place < end]
        heapq.heapify(self._free)
        self._end = end
        blocks = max(1, -(-end // BLOCK_SLOTS))
        del self._blocks[blocks:]
        self.version += 1
        self._marked = {number for number in self._marked if number < blocks}
        if end % BLOCK_SLOTS and self._blocks[-1].compiled is not None:
            self._marked.add(blocks - 1)  # it has fewer words now
        if len(self.slot_at) > 4 * blocks * BLOCK_SLOTS:
            self.slot_at = self.slot_at[: blocks * BLOCK_SLOTS].copy()

    def mark_all(self) -> None:
        """Constants moved: compile everything anew."""
        self._marked.update(number for number in range(len(self._blocks)) if self._held(number))

    def compile_full(self) -> None:
        """Compile the marked blocks that have no room for more, so that the next batch need not."""
        self._compile([number for number in self._marked if (number + 1) * BLOCK_SLOTS <= self._end])

    def compile(self) -> None:
        """Compile the marked blocks. O(blocks marked)."""
        self._compile(sorted(self._marked))

    def _compile(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            first = number * BLOCK_WORDS
            words = min(BLOCK_WORDS, self.words - first)
            slots = self.slot_at[number * BLOCK_SLOTS : number * BLOCK_SLOTS + 64 * words].astype(np.int64)
            made = compile_block(self._store, slots, number, words, self._pool)
            self._blocks[number].compiled = made
            self.compilations += 1
            self.version += 1
        if numbers:
            held = [block for _, block in self.blocks()]
            attributes = {each for block in held for each in block.attributes()}
            self.cost = RowCost(sum(block.work for block in held), len(attributes))
        self._marked.difference_update(numbers)

    def apply(self, batch: BatchKeys, out: BitTarget, start: int) -> None:
        """Write rows start .. start+n of out, every word of them that a place is in."""
        if self._marked:
            self.compile()
        words = self.words
        for number, block in enumerate(self._blocks):
            if number * BLOCK_WORDS >= words:
                break
            if block.compiled is None:
                out.clear(number, start, batch.n)
            else:
                block.compiled.apply(batch, out, start, self._scratch)

    def blocks(self) -> Iterator[tuple[int, SlotBlock]]:
        """The compiled blocks that hold a slot, by number."""
        for number, block in enumerate(self._blocks):
            if block.compiled is not None:
                yield number, block.compiled

    def facts(self, place: int, schema: Schema) -> dict[str, int]:
        """How many pieces the domain of each column is cut into, by column name, in the block of a place."""
        self.compile()
        block = self._blocks[place // BLOCK_SLOTS].compiled
        if block is None:
            return {}
        cuts = {cuts for layer in block.layers for group in layer.groups for cuts in group}
        return {schema.field(c.index).name: c.pieces for c in sorted(cuts, key=lambda c: c.index)}

    def nbytes(self) -> int:
        """Bytes of the compiled tables."""
        return sum(block.nbytes() for _, block in self.blocks())

    def _check(self) -> None:
        held = np.flatnonzero(self.slot_at >= 0)
        assert len(held) == self.count
        assert not len(held) or held[-1] < self._end
        assert len(set(self._free)) == len(self._free)
        assert not set(self._free) & set(held.tolist())
        assert all(0 <= place < self._end for place in self._free)
        for number, held_block in enumerate(self._blocks):
            slots = self.slot_at[number * BLOCK_SLOTS : (number + 1) * BLOCK_SLOTS]
            slots = slots[slots >= 0]
            assert int(self._store.count[slots].sum()) == held_block.intervals
            block = held_block.compiled
            if number not in self._marked and len(slots):
                assert block is not None
                live = np.zeros_like(block.layers[0].live)
                for layer in block.layers:
                    live |= layer.live
                places = np.flatnonzero(np.unpackbits(live.view(np.uint8), bitorder="little"))
                expected = slots[self._store.terms[slots] > 0]
                assert sorted(self.slot_at[number * BLOCK_SLOTS + places].tolist()) == sorted(
                    expected.tolist()
                )
