"""The partial results of one measure for many slots: blocks of 4,096 ordinals, and of 64 such blocks.

    words  -> rows of 64 slots that are kept, each slot of them that takes part in a mask
    open      the state of the block that rows enter now
    blocks    [words, blocks, 64]: the states of blocks that are full, the first of them number ``first``
    above     [words, nodes, 64]: those of 64 aligned blocks, merged left to right; from ``first >> 6`` on

A block that began before ``since``, or whose begin is no longer retained, holds too little; so a slot's
block may be used only for windows that contain it whole and if it began at or after the slot's ``since``.

Readers take ``partials`` and need no lock: its arrays only grow, and where something must move or go, others
take their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import partials as kernels
from engine.kernels.window_totals import BLOCK_SHIFT, FAN_SHIFT
from engine.language.aggregates import Statistic
from engine.model.batch import Int64Array
from engine.operators.maintained.accumulator import Accumulator, accumulator
from engine.operators.maintained.doubles import DoubleSums, State
from engine.operators.maintained.measure import Measure, Operands

Words = npt.NDArray[np.uint64]

BLOCK = 1 << BLOCK_SHIFT
FAN = 1 << FAN_SHIFT


@dataclass(frozen=True, slots=True)
class Partials:
    """What readers see. places: of words in the arrays; masks: uint64[words]; since: ordinals, [words, 64].

    Blocks first <= number < stop are there, and the nodes above that end at or before stop. kind: what the
    arrays of a state are.
    """

    kind: Accumulator | DoubleSums
    places: Mapping[int, int]
    masks: Words
    since: Int64Array
    first: int
    stop: int
    blocks: State
    above: State


class Entered:
    """Match bits of rows of one block. columns: uint64[n] of each word."""

    __slots__ = ("_counts", "columns")

    def __init__(self, columns: Mapping[int, Words]) -> None:
        self.columns = columns
        self._counts: dict[int, Int64Array] = {}

    def counts(self, word: int) -> Int64Array:
        """int64[64]: how many rows each slot of a word matches; all banks share them."""
        found = self._counts.get(word)
        if found is None:
            found = self._counts[word] = np.zeros(kernels.SLOTS, np.int64)
            kernels.count(self.columns[word], found)
        return found


class Bank:
    """See the module. Rows come in order, without a gap."""

    def __init__(self, measure: Measure, first: int) -> None:
        """The first row that enters is of block ``first``."""
        self.measure = measure
        self.kind = accumulator(measure)
        self._places: dict[int, int] = {}
        self._masks = np.zeros(1, np.uint64)
        self._since = np.zeros((1, kernels.SLOTS), np.int64)
        self._bits = np.empty(BLOCK, np.uint64)
        self.restart(first, 0)

    def restart(self, first: int, since: int) -> None:
        """Forget all rows. The next to enter is of block ``first``, and its ordinal at least ``since``."""
        self._first = self._stop = first
        self._since[:] = since
        words = len(self._masks)
        self._open = self.kind.new(words)
        self._blocks = self.kind.new(words, 1)
        self._above = self.kind.new(words, 1)
        self._publish()

    def __len__(self) -> int:
        """How many slots it keeps."""
        return sum(int(mask).bit_count() for mask in self._masks.tolist())

    @property
    def words(self) -> Iterable[tuple[int, int]]:
        """(word, mask of its slots) of each word with a slot."""
        masks = self._masks.tolist()
        return [(word, masks[place]) for word, place in self._places.items() if masks[place]]

    def holds(self, slot: int) -> bool:
        place = self._places.get(slot >> 6)
        return place is not None and bool(int(self._masks[place]) >> (slot & 63) & 1)

    # --- rows -------------------------------------------------------------------------------------

    def enter(self, entered: Entered, operands: Operands) -> None:
        """Rows of the open block, at most so many as it has room for, with the matches of :attr:`words`.

        What is kept for slots outside the masks means nothing.
        """
        ok, statistic = operands.ok, self.measure.statistic
        if statistic is Statistic.ERRORS:
            if operands.error is None:
                return
            ok = operands.error
        elif ok is None and statistic is Statistic.COUNT:
            for word, _ in self.words:
                self._open[0][self._places[word]] += entered.counts(word)
            return
        kind, values = self.kind.prepared(operands)
        self._become(kind)
        for word, mask in self.words:
            bits = entered.columns[word]
            if ok is not None:
                column, bits = bits, self._bits[: len(bits)]
                kernels.restrict(column, np.uint64(mask), ok, bits)
            place = self._places[word]
            self.kind.update(bits, values, tuple(each[place] for each in self._open))

    def _become(self, kind: Accumulator | DoubleSums) -> None:
        """States get the planes of a kind that has all of theirs."""
        if kind is self.kind:
            return
        before, self.kind = self.kind, kind
        assert isinstance(before, DoubleSums)
        assert isinstance(kind, DoubleSums)
        self._open = kind.adopted(self._open, before)
        self._blocks = kind.adopted(self._blocks, before)
        self._above = kind.adopted(self._above, before)
        self._publish()

    def close(self) -> None:
        """The open block is full."""
        at = self._stop - self._first
        if at >= self._blocks[0].shape[1]:
            self._blocks = tuple(_longer(each, 1) for each in self._blocks)
        for block, open_ in zip(self._blocks, self._open, strict=True):
            block[:, at] = open_
        self._stop += 1
        if self._stop % FAN == 0:
            self._close_above()
        self._open = self.kind.new(len(self._masks))
        self._publish()

    def _close_above(self) -> None:
        """The last 64 blocks, as far as they are there, make a node."""
        low = max(self._first, self._stop - FAN) - self._first
        merged = tuple(block[:, low].copy() for block in self._blocks)
        for at in range(low + 1, self._stop - self._first):
            merged = self.kind.merge(merged, tuple(block[:, at] for block in self._blocks))
        node = (self._stop >> FAN_SHIFT) - 1 - (self._first >> FAN_SHIFT)
        if node >= self._above[0].shape[1]:
            self._above = tuple(_longer(each, 1) for each in self._above)
        for above, each in zip(self._above, merged, strict=True):
            above[:, node] = each

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone. Blocks go when they are half of all, and nodes with them."""
        first = min(self._stop, base >> BLOCK_SHIFT >> FAN_SHIFT << FAN_SHIFT)
        gone = first - self._first
        if gone <= 0 or 2 * gone < self._stop - self._first:
            return
        nodes = (first >> FAN_SHIFT) - (self._first >> FAN_SHIFT)
        self._blocks = tuple(np.ascontiguousarray(each[:, gone:]) for each in self._blocks)
        self._above = tuple(np.ascontiguousarray(each[:, nodes:]) for each in self._above)
        self._blocks = tuple(_at_least_one(each) for each in self._blocks)
        self._above = tuple(_at_least_one(each) for each in self._above)
        self._first = first
        self._publish()

    # --- slots ------------------------------------------------------------------------------------

    def put(self, slots: Sequence[int], since: int) -> None:
        """Slots come, with blocks from this ordinal on."""
        for word, mask in words_of(slots).items():
            self._admit(self._place(word), mask, since)
        self._publish()

    def _place(self, word: int) -> int:
        """Where a word is, or will be from now on."""
        place = self._places.get(word)
        if place is None:
            place = len(self._places)
            if place == len(self._masks):
                self._widen(len(self._masks))
            self._places = {**self._places, word: place}
        return place

    def _admit(self, place: int, mask: int, since: int) -> None:
        self._since[place, [bit for bit in range(kernels.SLOTS) if mask >> bit & 1]] = since
        self._masks = self._masks.copy()
        self._masks[place] |= np.uint64(mask)

    def _widen(self, more: int) -> None:
        self._masks = np.concatenate([self._masks, np.zeros(more, np.uint64)])
        self._since = np.concatenate([self._since, np.zeros((more, kernels.SLOTS), np.int64)])
        self._open = tuple(np.concatenate(pair) for pair in zip(self._open, self.kind.new(more), strict=True))
        blocks = self.kind.new(more, self._blocks[0].shape[1])
        self._blocks = tuple(np.concatenate(pair) for pair in zip(self._blocks, blocks, strict=True))
        above = self.kind.new(more, self._above[0].shape[1])
        self._above = tuple(np.concatenate(pair) for pair in zip(self._above, above, strict=True))

    def take(self, other: Bank) -> None:
        """The slots of another bank of this measure, that went over the same rows, perhaps from others on."""
        if isinstance(self.kind, DoubleSums):
            assert isinstance(other.kind, DoubleSums)
            self._become(self.kind.united(set(other.kind.planes)))
            other._become(self.kind)
        first = max(self._first, other._first)
        low, high, skipped = first - self._first, other._stop - self._first, first - other._first
        node, nodes = (first >> FAN_SHIFT) - (self._first >> FAN_SHIFT), self._stop >> FAN_SHIFT
        nodes -= first >> FAN_SHIFT
        above = (first >> FAN_SHIFT) - (other._first >> FAN_SHIFT)
        for word, mask in other.words:
            bits = [bit for bit in range(kernels.SLOTS) if mask >> bit & 1]
            mine, its = self._place(word), other._places[word]
            since = int(other._since[its, bits[0]])
            for place in range(len(self._open)):
                self._open[place][mine, bits] = other._open[place][its, bits]
                blocks = other._blocks[place][its, skipped : skipped + high - low, bits]
                self._blocks[place][mine, low:high, bits] = blocks
                nodes_above = other._above[place][its, above : above + nodes, bits]
                self._above[place][mine, node : node + nodes, bits] = nodes_above
            self._admit(mine, mask, since)
        self._publish()

    def remove(self, slot: int) -> None:
        """A slot goes."""
        place = self._places[slot >> 6]
        masks = self._masks.copy()
        masks[place] &= np.uint64(~(1 << (slot & 63)) & (2**64 - 1))
        self._masks = masks
        self._publish()

    # --- readers ----------------------------------------------------------------------------------

    def _publish(self) -> None:
        self.partials = Partials(
            self.kind,
            self._places,
            self._masks,
            self._since,
            self._first,
            self._stop,
            self._blocks,
            self._above,
        )

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for state in (self._open, self._blocks, self._above) for each in state)

    def _check(self) -> None:
        assert self._first <= self._stop
        assert sorted(self._places.values()) == list(range(len(self._places)))
        assert len(self._places) <= len(self._masks) == len(self._since)
        for state, least in (
            (self._blocks, self._stop - self._first),
            (self._above, (self._stop >> FAN_SHIFT) - (self._first >> FAN_SHIFT)),
        ):
            for each in state:
                assert each.shape[0] == len(self._masks)
                assert each.shape[1] >= least


def words_of(slots: Iterable[int]) -> dict[int, int]:
    """The mask of these slots in each of their words."""
    masks: dict[int, int] = {}
    for slot in slots:
        masks[slot >> 6] = masks.get(slot >> 6, 0) | 1 << (slot & 63)
    return masks


def _longer(array: npt.NDArray[np.generic], axis: int) -> npt.NDArray[np.generic]:
    """Room for twice as many; what is behind the end is unspecified."""
    return np.concatenate([array, array], axis)


def _at_least_one(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    return array if array.shape[1] else np.zeros((array.shape[0], 1, array.shape[2]), array.dtype)
