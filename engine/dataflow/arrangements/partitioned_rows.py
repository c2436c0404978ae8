"""Rows by the instant of their exit, in partitions: what is kept of rows that only their exit takes away.

Rows come in blocks; a block is cut by partition, and never changed, so that a reader may hold what it saw.
Partition k has the exits after ``k * width`` up to ``(k + 1) * width``; one that the clock has passed goes
whole. The rows of the partition that the clock is in stand in the
order of their exits, but for those that came since (*late*), which are looked at each time.

Cost: O(1) a row to come and to leave, a sort within its partition where exits are read, and O(partitions) a
block. 8 bytes a row for each word of an id, 16 for its instants, 4 for its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.dataflow.arrangements.exit_rows import ExitRows, RowBlock, one_block
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.buffers.settings import StateSettings
from engine.kernels import exit_order
from engine.model.batch import Int32Array

BLOCKS_MAX = 32
"""A partition of more blocks than this is made one again."""
LATE_MIN = 1_024
"""So many late rows are put in order with the others."""
NUMBERS_MAX = 1 << 15


class PartitionedRows(ExitRows):
    """One writer."""

    def __init__(
        self,
        id_words: int,
        span: int,
        partitions: int | None = None,
        settings: StateSettings | None = None,
    ) -> None:
        """span: how far ahead of the clock exits are, in halves of a ms. partitions: as
        :func:`engine.dataflow.buffers.settings.StateSettings.partitions_of` has it.
        """
        self._id_words = id_words
        settings = settings or StateSettings()
        self._width = -(-span // settings.partitions_of(span, partitions))
        self._late_min = settings.capacities.first(LATE_MIN)
        self._partitions: dict[int, tuple[RowBlock, ...]] = {}
        self._front: tuple[int, RowBlock] | None = None
        """The partition that the clock is in, and its rows in the order of their exits."""
        self._count = 0
        self.work = Work()

    def __len__(self) -> int:
        return self._count

    # --- rows that come and leave -----------------------------------------------------------------

    def insert(self, block: RowBlock) -> None:
        if not block.n:
            return
        self._count += block.n
        self.work.inserted += block.n
        numbers = (block.valid_to - 1) // self._width
        first = int(numbers.min())
        numbers -= first
        if not numbers.any():
            self._append(first, block)
            return
        small = int(numbers.max()) < NUMBERS_MAX
        order = np.argsort(numbers.astype(np.int16) if small else numbers, kind="stable")
        block, numbers = block.take(order), numbers[order]
        borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), block.n]
        for start, stop in pairwise(borders):
            self._append(first + int(numbers[start]), block.slice(start, stop))

    def _append(self, number: int, block: RowBlock) -> None:
        blocks = (*self._partitions.get(number, ()), block)
        self._partitions[number] = blocks if len(blocks) <= BLOCKS_MAX else (self._one(blocks),)

    def expire(self, until: int) -> RowBlock:
        left = []
        for number in self._passed(until):
            left += self._rows_of(number)
        now = (until - 1) // self._width if until % self._width else None
        if now is not None and (now in self._partitions or (self._front and self._front[0] == now)):
            left += self._taken_from(now, until)
        gone = self._one(left)
        self._count -= gone.n
        self.work.deleted += gone.n
        return gone

    def _passed(self, until: int) -> list[int]:
        numbers = set(self._partitions)
        if self._front is not None:
            numbers.add(self._front[0])
        return sorted(number for number in numbers if (number + 1) * self._width <= until)

    def _rows_of(self, number: int) -> list[RowBlock]:
        """All rows of a partition, taken out."""
        blocks = list(self._partitions.pop(number, ()))
        if self._front is not None and self._front[0] == number:
            blocks.append(self._front[1])
            self._front = None
        return blocks

    def _taken_from(self, number: int, until: int) -> list[RowBlock]:
        """The rows of the partition that the clock is in whose exit has come, taken out."""
        late = self._partitions.pop(number, ())
        if self._front is None or self._front[0] != number:
            assert self._front is None
            self._front, late = (number, self._sorted(late)), ()
        front = self._front[1]
        count = sum(block.n for block in late)
        if count > max(self._late_min, front.n):
            front, late = self._sorted((front, *late)), ()
        stop = int(front.valid_to.searchsorted(until, "right"))
        taken = [front.slice(0, stop)] if stop else []
        self.work.visited += stop
        self._front = number, front.behind(stop)
        stay = []
        for block in late:
            self.work.visited += block.n
            leaves = block.valid_to <= until
            if leaves.any():
                taken.append(block.take(np.flatnonzero(leaves)))
                block = block.take(np.flatnonzero(~leaves))
            if block.n:
                stay.append(block)
        if stay:
            self._partitions[number] = tuple(stay)
        return taken

    def _sorted(self, blocks: Sequence[RowBlock]) -> RowBlock:
        block = self._one(blocks)
        self.work.visited += block.n
        places, exits = np.arange(block.n, dtype=np.int32), block.valid_to.copy()
        exit_order.sort(places, exits, 0, block.n)
        return block.take(places.astype(np.int64))

    def _one(self, blocks: Sequence[RowBlock]) -> RowBlock:
        return one_block(blocks, self._id_words)

    # --- what is read -----------------------------------------------------------------------------

    def blocks(self) -> list[RowBlock]:
        found = [block for blocks in self._partitions.values() for block in blocks]
        return found if self._front is None else [*found, self._front[1]]

    def drop_columns(self, columns: Int32Array) -> None:
        kept: dict[int, tuple[RowBlock, ...]] = {}
        for number, blocks in self._partitions.items():
            left = [block.without(columns) for block in blocks]
            if any(block.n for block in left):
                kept[number] = tuple(block for block in left if block.n)
        self._partitions = kept
        if self._front is not None:
            self._front = self._front[0], self._front[1].without(columns)
        self._count = sum(block.n for block in self.blocks())

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks())

    def _check(self) -> None:
        assert self._count == sum(block.n for block in self.blocks())
        for number, blocks in self._partitions.items():
            for block in blocks:
                assert bool(((block.valid_to - 1) // self._width == number).all())
        for block in self.blocks():
            starts, owners = block.spread()
            assert len(starts) == block.n + 1
            assert starts[-1] == len(owners)
            assert block.ids.shape == (block.n, self._id_words)
        if self._front is not None:
            exits = self._front[1].valid_to
            assert bool((exits[1:] >= exits[:-1]).all())
