"""Rows in order, run by run, and which of them are among the first.

A *slot* is a row; ``words[slot]``, compared word by word, is its place in the order, and no two rows of a run
have the same. The first rows of a run stand in order in a piece of a pool, some more of them than are told,
and the others in a pairing heap: so a row that is not among the first costs O(1), one that is O(log n), and
as many words are moved as rows stand behind it in the piece. A row that leaves the heap is marked; its
*entry* goes when it comes to the root or when the heaps are built anew.

A *record* says that a row was told from one instant to another. Pieces hold the number of the last record of
each row; numbers below those of the step are of steps before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step
from engine.kernels.word_order import comes_before

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NONE = -1
NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1


class Runs(NamedTuple):
    """By slot: words int64[slots, W], gone (the row is nowhere any more), held (by so many entries). By run:
    starts and counts of its piece, roots of its heap. The pool: firsts, the slots, and told, the records. By
    entry: slots, runs, child, sibling. used: int64[1], how many entries there are.
    """

    words: Int64Array
    gone: BoolArray
    held: Int32Array
    starts: Int64Array
    counts: Int32Array
    roots: Int32Array
    firsts: Int32Array
    told: Int64Array
    slots: Int32Array
    runs: Int32Array
    child: Int32Array
    sibling: Int32Array
    used: Int64Array


class RankBounds(NamedTuple):
    """Told are the rows offset <= place < most of a run. keep: a piece has at most so many, more than most.
    numbered: places are told too.
    """

    offset: int
    most: int
    keep: int
    numbered: bool


class RankVersions(NamedTuple):
    """Versions, one an item: a row (its slot), a run, the instants between which it was told, and the number
    of the row, from 1 on.
    """

    slots: Int32Array
    runs: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    numbers: Int64Array


class RankEvents(NamedTuple):
    """Events by instant: at, rows, signs (1 enters, -1 leaves). Row r is slots[r], in the runs
    runs[starts[r]:starts[r + 1]].
    """

    at: Int64Array
    rows: Int64Array
    signs: Int8Array
    starts: Int64Array
    runs: Int32Array
    slots: Int32Array


# --- heaps ------------------------------------------------------------------------------------------


@step
def _meld(
    one: int, other: int, slots: Int32Array, words: Int64Array, child: Int32Array, sibling: Int32Array
) -> int:
    """One heap of two, neither of which is empty; their root."""
    if comes_before(slots[other], slots[one], words):
        one, other = other, one
    sibling[other] = child[one]
    child[one] = other
    return one


@borrowing
def _popped(root: int, slots: Int32Array, words: Int64Array, child: Int32Array, sibling: Int32Array) -> int:
    """The root of a heap without its root; NONE of an empty one."""
    pairs, one = NONE, int(child[root])
    while one >= 0:
        other = int(sibling[one])
        following, melded = NONE, one
        sibling[one] = NONE
        if other >= 0:
            following = int(sibling[other])
            sibling[other] = NONE
            melded = _meld(one, other, slots, words, child, sibling)
        sibling[melded] = pairs
        pairs, one = melded, following
    root = NONE
    while pairs >= 0:
        following = int(sibling[pairs])
        sibling[pairs] = NONE
        root = pairs if root < 0 else _meld(root, pairs, slots, words, child, sibling)
        pairs = following
    return root


@step
def _push(run: int, slot: int, held: Runs) -> None:
    entry, root = held.used[0], held.roots[run]
    held.used[0] += 1
    held.slots[entry], held.runs[entry] = slot, run
    held.child[entry] = held.sibling[entry] = NONE
    held.held[slot] += 1
    if root < 0:
        held.roots[run] = entry
    else:
        held.roots[run] = _meld(root, entry, held.slots, held.words, held.child, held.sibling)


@borrowing
def renew(dropped: BoolArray, held: Runs) -> None:
    """Build the heaps anew, without rows that are gone and without those of some runs, bool[runs]."""
    kept = 0
    for entry in range(held.used[0]):
        slot = held.slots[entry]
        if slot < 0:
            continue
        if held.gone[slot] or dropped[held.runs[entry]]:
            held.held[slot] -= 1
        else:
            held.slots[kept], held.runs[kept] = slot, held.runs[entry]
            kept += 1
    held.used[0] = kept
    held.roots[:] = NONE
    for entry in range(kept):
        held.child[entry] = held.sibling[entry] = NONE
        root = held.roots[held.runs[entry]]
        if root >= 0:
            root = _meld(root, entry, held.slots, held.words, held.child, held.sibling)
        else:
            root = entry
        held.roots[held.runs[entry]] = root


# --- pieces -----------------------------------------------------------------------------------------


@step
def _place(run: int, slot: int, held: Runs) -> int:
    """How many rows of the piece are before a row."""
    start, low, high = held.starts[run], 0, int(held.counts[run])
    while low < high:
        middle = (low + high) >> 1
        if comes_before(held.firsts[start + middle], slot, held.words):
            low = middle + 1
        else:
            high = middle
    return low


@borrowing
def places(runs: Int32Array, slots: Int32Array, held: Runs, found: Int64Array) -> None:
    """found[i] = how many rows of the piece of runs[i] are before slots[i]; written."""
    for i in range(runs.shape[0]):
        found[i] = _place(runs[i], slots[i], held)


@step
def _is_behind(
    run: int, slot: int, words: Int64Array, starts: Int64Array, counts: Int32Array, firsts: Int32Array
) -> bool:
    """Whether a row comes after all rows of the piece, of which there are some."""
    return comes_before(firsts[starts[run] + counts[run] - 1], slot, words)


@step
def _put(run: int, slot: int, keep: int, held: Runs) -> int:
    """Take a row in; its place in the piece, NONE: it is in the heap."""
    start, count = held.starts[run], int(held.counts[run])
    place = count
    if count > 0 and _is_behind(run, slot, held.words, held.starts, held.counts, held.firsts):
        if held.roots[run] >= 0 or count >= keep:
            _push(run, slot, held)
            return NONE
    else:
        place = _place(run, slot, held)
    for each in range(start + count, start + place, -1):
        held.firsts[each] = held.firsts[each - 1]
        held.told[each] = held.told[each - 1]
    held.firsts[start + place] = slot
    held.counts[run] += 1
    return place


@step
def _spill(run: int, keep: int, held: Runs) -> None:
    """Bring the piece back to its size."""
    if held.counts[run] > keep:
        held.counts[run] -= 1
        _push(run, held.firsts[held.starts[run] + held.counts[run]], held)


@step
def _remove(run: int, place: int, bounds: RankBounds, held: Runs) -> None:
    """Take a row out of the piece, and others into it where too few are left."""
    start = held.starts[run]
    held.counts[run] -= 1
    for each in range(start + place, start + held.counts[run]):
        held.firsts[each] = held.firsts[each + 1]
        held.told[each] = held.told[each + 1]
    if held.counts[run] >= bounds.most:
        return
    wanted = (bounds.most + bounds.keep) >> 1
    while held.counts[run] < wanted and held.roots[run] >= 0:
        entry = held.roots[run]
        slot = held.slots[entry]
        held.roots[run] = _popped(entry, held.slots, held.words, held.child, held.sibling)
        held.slots[entry] = NONE
        held.held[slot] -= 1
        if not held.gone[slot]:
            held.firsts[start + held.counts[run]] = slot
            held.counts[run] += 1


@borrowing
def enter(starts: Int64Array, runs: Int32Array, slots: Int32Array, keep: int, held: Runs) -> None:
    """Rows enter, and nobody asks for records. Row r is slots[r], in runs[starts[r]:starts[r + 1]]."""
    for r in range(slots.shape[0]):
        for pair in range(starts[r], starts[r + 1]):
            place = _put(runs[pair], slots[r], keep, held)
            if place >= 0:
                held.told[held.starts[runs[pair]] + place] = 0
                _spill(runs[pair], keep, held)


# --- records ----------------------------------------------------------------------------------------


@step
def _open(run: int, place: int, at: int, base: int, count: int, held: Runs, made: RankVersions) -> int:
    """The row at a place is told from an instant on; how many records there are then."""
    where = held.starts[run] + place
    made.slots[count], made.runs[count], made.numbers[count] = held.firsts[where], run, place + 1
    made.valid_from[count], made.valid_to[count] = at, FOREVER
    held.told[where] = base + count
    return count + 1


@step
def _close(
    run: int, place: int, at: int, base: int, count: int, held: Runs, made: RankVersions, was: int
) -> int:
    """The row at a place is told no more. was: the place it was told to have."""
    where = held.starts[run] + place
    if held.told[where] >= base:
        made.valid_to[held.told[where] - base] = at
        return count
    made.slots[count], made.runs[count], made.numbers[count] = held.firsts[where], run, was + 1
    made.valid_from[count], made.valid_to[count] = NEVER, at
    return count + 1


@step
def _moved(
    run: int, place: int, at: int, base: int, count: int, held: Runs, made: RankVersions, was: int
) -> int:
    """The row at a place was at another."""
    record = held.told[held.starts[run] + place] - base
    if record >= 0 and made.valid_from[record] == at:
        made.numbers[record] = place + 1
        return count
    count = _close(run, place, at, base, count, held, made, was)
    return _open(run, place, at, base, count, held, made)


@step
def _entered(
    run: int, slot: int, at: int, base: int, count: int, bounds: RankBounds, held: Runs, made: RankVersions
) -> int:
    place = _put(run, slot, bounds.keep, held)
    if place < 0:
        return count
    if place < bounds.most:
        if held.counts[run] > bounds.most:
            count = _close(run, bounds.most, at, base, count, held, made, bounds.most - 1)
        came = max(place, bounds.offset)
        if came < held.counts[run]:
            count = _open(run, came, at, base, count, held, made)
        if bounds.numbered:
            for each in range(place + 1, min(held.counts[run], bounds.most)):
                count = _moved(run, each, at, base, count, held, made, each - 1)
    _spill(run, bounds.keep, held)
    return count


@step
def _left(
    run: int, slot: int, at: int, base: int, count: int, bounds: RankBounds, held: Runs, made: RankVersions
) -> int:
    place = _place(run, slot, held)
    went = max(place, bounds.offset)
    if went < min(held.counts[run], bounds.most):
        count = _close(run, went, at, base, count, held, made, went)
    _remove(run, place, bounds, held)
    if place < bounds.most:
        there = min(held.counts[run], bounds.most - 1)
        if bounds.numbered:
            for each in range(place, there):
                count = _moved(run, each, at, base, count, held, made, each + 1)
        if held.counts[run] >= bounds.most:
            count = _open(run, bounds.most - 1, at, base, count, held, made)
    return count


@borrowing
def fold(
    entering: RankEvents, bounds: RankBounds, base: int, held: Runs, made: RankVersions, progress: Int64Array
) -> bool:
    """Rows enter and leave. made: what is told then, records whose instants are the same mean nothing.

    progress: int64[3], written: the next event, the next pair of its row, the records there are. Returns
    whether all is done; if not, more room is wanted for records. A row enters pieces that have room for it.
    """
    words, starts, counts, firsts, roots = held.words, held.starts, held.counts, held.firsts, held.roots
    count = progress[2]
    for event in range(progress[0], entering.at.shape[0]):
        r, at = entering.rows[event], entering.at[event]
        slot, stop = entering.slots[r], entering.starts[r + 1]
        start = entering.starts[r] + (progress[1] if event == progress[0] else 0)
        if entering.signs[event] < 0:
            held.gone[slot] = True
        for pair in range(start, stop):
            run = entering.runs[pair]
            if counts[run] > 0 and _is_behind(run, slot, words, starts, counts, firsts):
                if entering.signs[event] < 0:
                    continue
                if roots[run] >= 0 or counts[run] >= bounds.keep:
                    _push(run, slot, held)
                    continue
            wanted = 2
            if bounds.numbered:
                wanted = 2 * (min(held.counts[run], bounds.most) + 1)
            if count + wanted > made.slots.shape[0]:
                progress[0], progress[1], progress[2] = event, pair - entering.starts[r], count
                return False
            if entering.signs[event] > 0:
                count = _entered(run, slot, at, base, count, bounds, held, made)
            else:
                count = _left(run, slot, at, base, count, bounds, held, made)
    progress[2] = count
    return True
