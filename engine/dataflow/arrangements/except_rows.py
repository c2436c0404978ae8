"""The rows of EXCEPT ALL, and for which queries each is in the answer, 64 queries to a word of bits
(:mod:`engine.kernels.except_words`).

Cost: O(1) a row and word of columns, and that of the buffers of both inputs. Bytes: some 60 a left row and
word, 24 a right one, and 8 for each bit of the counts of a value and word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.changes.temporal_relation import Interval
from engine.dataflow.arrangements.cell_rows import CellRows
from engine.dataflow.arrangements.cells import events_of
from engine.dataflow.arrangements.pairs import Pairs
from engine.dataflow.arrangements.row_store import longer, with_none
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.delta import Delta
from engine.dataflow.policy import KeptEdge
from engine.kernels import column_words
from engine.kernels import except_words as kernels
from engine.kernels.column_words import WORD_BITS, WORD_MASK, UInt64Array
from engine.kernels.except_words import Records, WordMoves
from engine.kernels.word_chains import LONG, NONE, SHORT, Cells, ChainEntries, Order, Touched
from engine.model.batch import Int32Array, Int64Array
from engine.model.types import Type
from engine.operators.keys import with_one_zero

PLANES_MIN = 4
RECORDS_MIN = 1_024


@dataclass(frozen=True, slots=True)
class ExceptInput:
    """One input. id_words: of its rows. on: the places of the columns that are compared. edge: how its rows
    are kept; None: its exits are told.
    """

    id_words: int
    on: tuple[int, ...]
    edge: KeptEdge | None


@dataclass(frozen=True, slots=True)
class WordRows:
    """Rows by words of columns. delta: the words are its owners. cells: int32, bits: uint64, of each pair of
    a row and a word.
    """

    delta: Delta
    cells: Int32Array
    bits: UInt64Array


class ExceptRows:
    """One writer. by_exit: the rows of a value are in the order of their exits, the last to leave first; else
    in that of their ids. The answer is the last of them.
    """

    def __init__(
        self,
        left: ExceptInput,
        right: ExceptInput,
        types: Sequence[Type],
        settings: StateSettings,
        *,
        by_exit: bool,
    ) -> None:
        """types: of the columns that are compared."""
        assert left.edge is not None
        self._inputs = left, right
        self._by_exit = by_exit
        self._capacities = settings.capacities
        self._keys = Pairs(types, settings.capacities)
        self.left = CellRows(left.edge, left.id_words, settings)
        self.right = None if right.edge is None else CellRows(right.edge, right.id_words, settings)
        self._entries = _no_entries()
        self._cells = _no_cells(self._keys.capacity, settings.capacities.first(PLANES_MIN))
        self._numbered = 0
        self._looked = 0

    def __len__(self) -> int:
        return len(self.left) + (0 if self.right is None else len(self.right))

    # --- rows that stand --------------------------------------------------------------------------

    def stand(self, delta: Delta, *, of_left: bool) -> None:
        """Rows are there for some columns, perhaps for others already. To be followed by :meth:`settle`."""
        rows = self._by_word(delta, of_left=of_left)
        self._make_planes(self._deepest() + len(rows.delta.temporal))
        if of_left:
            entries = self.left.stand(rows.delta, rows.cells, rows.bits)
            self._make_entries()
            kernels.enter(entries, self._numbered, self._order(tells=False), self.entries, self._cells)
            self._numbered += len(entries)
            return
        if self.right is not None:
            self.right.stand(rows.delta, rows.cells, rows.bits)
        kernels.enter_right(rows.cells, rows.bits, self._cells)

    def settle(self, columns: Int32Array) -> int:
        """All rows of some columns, which had none before, are there: how many the answers have."""
        for rows in (self.left, self.right):
            if rows is not None:
                rows.stood()
        cells, bits = self._bits_of(columns)
        counts = np.zeros((1, self._cells.planes.shape[1]), np.uint64)
        return int(kernels.settle(cells, bits, self.entries, self._cells, counts))

    # --- rows that move ---------------------------------------------------------------------------

    def fold(self, left: Delta, right: Delta, interval: Interval, *, tells: bool) -> Records:
        """Rows of both inputs enter and leave. tells: records end when rows leave; else those end at their
        exits that are known. To be followed by :meth:`released`.
        """
        one, other = self._by_word(left, of_left=True), self._by_word(right, of_left=False)
        moves, entries, left_gone = self.left.move(one.delta, one.cells, interval, one.bits)
        self._make_entries()
        of_left = WordMoves(moves.at, moves.rows, moves.signs, moves.starts, entries, self.left.bits[entries])
        of_right, right_gone = self._right_moves(other, interval)
        moved = np.concatenate([one.cells, moves.cells, of_right.items])
        self._going = left_gone, right_gone, moved
        self._make_planes(self._deepest() + len(of_left.at) + len(of_right.at))
        made = _records(max(self._capacities.first(RECORDS_MIN), len(moved)))
        made.state[kernels.NUMBERED] = self._numbered
        while not kernels.fold(of_left, of_right, self._order(tells=tells), self.entries, self._cells, made):
            made = _with_room(made, max(2 * len(made.entries), int(made.state[kernels.ROOM])))
        self._numbered = int(made.state[kernels.NUMBERED])
        return made

    def released(self) -> None:
        """What was told of rows that left was read: they go, and cells without rows."""
        left_gone, right_gone, moved = self._going
        self.left.release(left_gone)
        if self.right is not None:
            self.right.release(right_gone)
        self._release_empty(moved)

    def _right_moves(self, rows: WordRows, interval: Interval) -> tuple[WordMoves, Int32Array]:
        """What right rows do, and the slots of those that leave."""
        if self.right is None:
            moves = WordMoves(*events_of(rows.delta, interval), rows.delta.starts, rows.cells, rows.bits)
            return moves, np.empty(0, np.int32)
        moved, entries, gone = self.right.move(rows.delta, rows.cells, interval, rows.bits)
        return WordMoves(*moved[:4], moved.cells, self.right.bits[entries]), gone

    # --- columns ----------------------------------------------------------------------------------

    def drop(self, columns: Int32Array) -> None:
        """No row is of these columns any more."""
        cells, bits = self._bits_of(columns)
        dropped = np.zeros(self._keys.capacity, np.uint64)
        dropped[cells] = bits
        _, entries = self.left.entries_of(self.left.slots())
        kernels.drop(cells, entries, dropped, self.entries, self._cells)
        if self.right is not None:
            self.right.bits &= ~dropped[self.right.held.cells[: len(self.right.bits)]]
        for rows in (self.left, self.right):
            if rows is not None:
                rows.drop(rows.bits == 0)
        self._release_empty(cells)

    def inside(self, columns: Int32Array) -> tuple[Int32Array, UInt64Array]:
        """(entries, bits) that are in the answers of some columns."""
        masks = _masks(columns)
        _, entries = self.left.entries_of(self.left.slots())
        words = self.words_of(self.entries.cells[entries])
        known = words < len(masks)
        entries, words = entries[known], words[known]
        bits = self.entries.inside[entries] & masks[words]
        return entries[bits != 0], bits[bits != 0]

    def words_of(self, cells: Int32Array) -> Int32Array:
        """The word of columns of each cell."""
        return self._keys.places_of(cells)

    def _bits_of(self, columns: Int32Array) -> tuple[Int32Array, UInt64Array]:
        """Cells of some columns, and their bits there."""
        cells, masks = self._keys.used(), _masks(columns)
        words = self.words_of(cells)
        known = words < len(masks)
        cells, bits = cells[known], masks[words[known]]
        return cells[bits != 0], bits[bits != 0]

    # --- cells and entries ------------------------------------------------------------------------

    def _by_word(self, delta: Delta, *, of_left: bool) -> WordRows:
        n, columns = len(delta.temporal), delta.temporal.relation.columns
        self._looked += len(delta.owners)
        latest = np.full((int(delta.owners.max(initial=0)) >> WORD_BITS) + 1, -1)
        starts = np.empty(n + 1, np.int64)
        words, bits = np.empty(len(delta.owners), np.int32), np.empty(len(delta.owners), np.uint64)
        count = column_words.gather(delta.starts, delta.owners, latest, starts, words, bits)
        words, bits = words[:count].copy(), bits[:count].copy()
        values = [with_one_zero(columns[place]) for place in self._inputs[0 if of_left else 1].on]
        keys = self._keys.number_keys(values, n)
        cells = self._keys.of(np.repeat(keys, np.diff(starts)), words)
        room, held = self._keys.capacity, self._cells
        if len(held.first) < room:
            self._cells = held._replace(
                first=with_none(held.first, room),
                last=with_none(held.last, room),
                outer=with_none(held.outer, room),
                inner=with_none(held.inner, room),
                blocks=with_none(held.blocks, room),
                lengths=longer(held.lengths, room),
                planes=longer(held.planes, room),
            )
        return WordRows(Delta(delta.temporal, starts, words, delta.ids), cells, bits)

    @property
    def entries(self) -> ChainEntries:
        """Those of left rows."""
        held = self.left.held
        return self._entries._replace(slots=held.slots, cells=held.cells, bits=self.left.bits)

    def _make_entries(self) -> None:
        """Room for all entries there are."""
        held, room = self._entries, self.left.entry_room
        if len(held.told) < room:
            kept = {
                name: longer(getattr(held, name), room) for name in ChainEntries._fields[3:-1]
            }  # slots, cells and bits are those of the rows
            self._entries = held._replace(**kept, told=with_none(held.told, room))
            self._make_blocks(room // SHORT)

    def _make_blocks(self, room: int) -> None:
        """Room for the blocks of so many chains: each has SHORT entries."""
        held = self._cells
        before, free = len(held.borders), int(held.free_count[0])
        self._cells = held._replace(borders=longer(held.borders, room), free=longer(held.free, room))
        self._cells.free[free : free + room - before] = np.arange(before, room)
        self._cells.free_count[0] += room - before

    def _order(self, *, tells: bool) -> Order:
        words = -self.left.exits.reshape(-1, 1) if self._by_exit else self.left.ids
        return Order(words, self.left.exits, self._by_exit, tells)

    def _deepest(self) -> int:
        """The left rows of no value and query are more than its right ones by more than this, or less."""
        planes = self._cells.planes
        sign = planes[:, -1]
        for place in range(planes.shape[1] - 2, -1, -1):
            if bool((planes[:, place] != sign).any()):
                return int(2 << place)
        return 1

    def _make_planes(self, most: int) -> None:
        """Planes for counts of at most this."""
        planes = self._cells.planes
        more = most.bit_length() + 1 - planes.shape[1]
        if more > 0:
            sign = np.repeat(planes[:, -1:], more, axis=1)
            self._cells = self._cells._replace(planes=np.hstack([planes, sign]))

    def _release_empty(self, cells: Int32Array) -> None:
        empty = np.empty(len(cells), np.int32)
        self._keys.release(empty[: kernels.empty(cells, self._cells, empty)])

    @property
    def work(self) -> Work:
        """Work on the rows of both inputs, and looks at the counts of values."""
        done = Work(visited=self._looked) + self.left.work
        return done if self.right is None else done + self.right.work

    @property
    def nbytes(self) -> int:
        arrays = *self._entries, *self._cells
        rows = self.left.nbytes + (0 if self.right is None else self.right.nbytes)
        return self._keys.nbytes + rows + sum(array.nbytes for array in arrays)

    # --- checks -----------------------------------------------------------------------------------

    def _check(self) -> None:
        """Chains are in order, answers are the ends of them, and borders are where they are looked for."""
        self._keys._check()
        held, cells, order = self.entries, self._cells, self._order(tells=False)
        for rows in (self.left, self.right):
            if rows is not None:
                rows._check()
                assert bool((rows.bits[rows.entries_of(rows.slots())[1]] != 0).all())
        assert not held.touched.any()
        assert bool((held.told == NONE).all())
        right = self._right_counts()
        used, found = self._keys.used(), 0
        for cell in used.tolist():
            chain = self._chain_of(cell)
            found += len(chain)
            assert bool((held.cells[chain] == cell).all())
            words = [tuple(row) for row in order.words[held.slots[chain]].tolist()]
            assert words == sorted(words)
            counts = _counts(cells.planes[cell])
            bits, inside = _spread(held.bits[chain]), _spread(held.inside[chain])
            if right is not None:
                assert (counts == bits.sum(axis=0) - right[cell]).all()
            assert len(chain) or counts.any()
            behind = np.cumsum(bits[::-1], axis=0)[::-1]
            assert (inside == (bits & (behind <= counts))).all()
            self._check_borders(cell, chain, bits, inside)
        assert found == self.left.entry_count
        unused = np.setdiff1d(np.arange(len(cells.first)), used)
        assert not cells.planes[unused].any()
        assert bool((cells.first[unused] == NONE).all())
        blocks = cells.blocks[used][cells.blocks[used] != NONE].tolist()
        free = cells.free[: int(cells.free_count[0])].tolist()
        assert sorted([*blocks, *free]) == list(range(len(cells.borders)))

    def _check_borders(self, cell: int, chain: list[int], bits: Int64Array, inside: Int64Array) -> None:
        cells, block = self._cells, int(self._cells.blocks[cell])
        assert len(chain) == cells.lengths[cell]
        if block != NONE:
            assert len(chain) >= SHORT
            begins = [chain[place] for place in inside.argmax(axis=0).tolist()]
            assert cells.borders[block].tolist() == np.where(inside.any(axis=0), begins, NONE).tolist()
            return
        assert len(chain) <= LONG
        outer, inner = int(cells.outer[cell]), int(cells.inner[cell])
        assert not inside[: len(chain) if outer == NONE else chain.index(outer)].any()
        behind = 0 if inner == NONE else chain.index(inner) + 1
        assert (inside == bits)[behind:].all()

    def _chain_of(self, cell: int) -> list[int]:
        entry, chain = int(self._cells.first[cell]), list[int]()
        while entry != NONE:
            chain.append(entry)
            entry = int(self.entries.following[entry])
        back, entry = list[int](), int(self._cells.last[cell])
        while entry != NONE:
            back.append(entry)
            entry = int(self.entries.previous[entry])
        assert chain == back[::-1]
        return chain

    def _right_counts(self) -> Int64Array | None:
        """int64[cells, 64]: right rows of each query of a cell, where they are kept."""
        if self.right is None:
            return None
        counts = np.zeros((self._keys.capacity, 64), np.int64)
        _, entries = self.right.entries_of(self.right.slots())
        np.add.at(counts, self.right.held.cells[entries], _spread(self.right.bits[entries]))
        return counts


def _masks(columns: Int32Array) -> UInt64Array:
    """uint64 by word: the bits of some columns."""
    masks = np.zeros((int(columns.max(initial=0)) >> WORD_BITS) + 1, np.uint64)
    np.bitwise_or.at(masks, columns >> WORD_BITS, np.uint64(1) << (columns & WORD_MASK).astype(np.uint64))
    return masks


def _spread(words: UInt64Array) -> Int64Array:
    """int64[n, 64]: the bits of words."""
    found: Int64Array = (words.reshape(-1, 1) >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(
        np.int64
    )
    return found


def _counts(planes: UInt64Array) -> Int64Array:
    """int64[64]: the counts of a cell. planes: uint64[P]."""
    bits = _spread(planes)
    weights = 1 << np.arange(len(planes))
    weights[-1] *= -1
    counts: Int64Array = weights @ bits
    return counts


def _no_entries() -> ChainEntries:
    none, wide, bits = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.uint64)
    return ChainEntries(none, none, bits, bits, bits, np.zeros(0, np.bool_), wide, none, none, none)


def _no_cells(room: int, planes: int) -> Cells:
    first, last, outer, inner, blocks = (np.full(room, NONE, np.int32) for _ in range(5))
    lengths, none = np.zeros(room, np.int32), np.zeros(0, np.int32)
    counts, borders = np.zeros((room, planes), np.uint64), np.zeros((0, 64), np.int32)
    return Cells(first, last, outer, inner, blocks, lengths, counts, borders, none, np.zeros(1, np.int64))


def _records(room: int) -> Records:
    return Records(
        np.empty(room, np.int32),
        np.empty(room, np.uint64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        Touched(np.empty(room, np.int32), np.zeros(1, np.int64)),
        np.zeros(kernels.STATES, np.int64),
    )


def _with_room(made: Records, room: int) -> Records:
    """As many records as there are, with room for more."""
    return Records(
        longer(made.entries, room),
        longer(made.bits, room),
        longer(made.valid_from, room),
        longer(made.valid_to, room),
        longer(made.below, room),
        Touched(longer(made.touched.entries, room), made.touched.top),
        made.state,
    )
