"""Rows in the order in which they came, all of which are looked at to find those that leave (DIRECT)."""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.exit_rows import ExitRows, RowBlock, one_block
from engine.dataflow.buffers.buffer import Work
from engine.model.batch import Int32Array

BLOCKS_MAX = 32


class ScannedRows(ExitRows):
    """One writer. Cost: O(1) a row to come, O(rows) to find those that leave."""

    def __init__(self, id_words: int) -> None:
        self._id_words = id_words
        self._blocks: list[RowBlock] = []
        self.work = Work()

    def __len__(self) -> int:
        return sum(block.n for block in self._blocks)

    def insert(self, block: RowBlock) -> None:
        if block.n:
            self._blocks.append(block)
            self.work.inserted += block.n
            if len(self._blocks) > BLOCKS_MAX:
                self._blocks = [one_block(self._blocks, self._id_words)]

    def expire(self, until: int) -> RowBlock:
        stay, left = [], []
        for block in self._blocks:
            self.work.visited += block.n
            leaves = block.valid_to <= until
            if leaves.any():
                left.append(block.take(np.flatnonzero(leaves)))
                block = block.take(np.flatnonzero(~leaves))
            if block.n:
                stay.append(block)
        self._blocks = stay
        gone = one_block(left, self._id_words)
        self.work.deleted += gone.n
        return gone

    def drop_columns(self, columns: Int32Array) -> None:
        blocks = [block.without(columns) for block in self._blocks]
        self._blocks = [block for block in blocks if block.n]

    def blocks(self) -> list[RowBlock]:
        return list(self._blocks)

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self._blocks)

    def _check(self) -> None:
        assert all(block.n for block in self._blocks)
