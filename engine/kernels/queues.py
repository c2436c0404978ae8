"""The latest rows of each run: queues that a row enters behind all others and leaves in front.

An *entry* is a row of a run. The oldest gives way when a run has more than ``most``. ``held[slot]`` is how
many runs a row is in; a row that is in none any more is written to ``released``. Cost: O(1) a row and run.

A *record* says from when until when a row was among the latest; entries hold the number of theirs, and those
below the numbers of the step are of steps before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NONE = -1
NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1


class Queues(NamedTuple):
    """By run: first and last, entries, of runs that have some; counts. By entry: slots, following, and told,
    the number of its record. free: entries, the first free[top[0]] of which are not in use. held: by slot.
    """

    first: Int32Array
    last: Int32Array
    counts: Int64Array
    slots: Int32Array
    following: Int32Array
    told: Int64Array
    free: Int32Array
    top: Int64Array
    held: Int32Array


class WindowVersions(NamedTuple):
    """Versions, one an item: a row (its slot), a run, and the instants between which the row was among the
    latest. filled: int64[1], how many versions there are.
    """

    slots: Int32Array
    runs: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    filled: Int64Array


class Released(NamedTuple):
    """filled: int64[1], how many rows there are."""

    slots: Int32Array
    filled: Int64Array


@borrowing
def _pop(run: int, held: Queues, released: Released) -> int:
    """The oldest row of a run leaves; its record."""
    entry = held.first[run]
    held.first[run] = held.following[entry]
    held.counts[run] -= 1
    held.free[held.top[0]] = entry
    held.top[0] += 1
    slot = held.slots[entry]
    held.held[slot] -= 1
    if held.held[slot] == 0:
        released.slots[released.filled[0]] = slot
        released.filled[0] += 1
    return int(held.told[entry])


@borrowing
def _push(run: int, slot: int, record: int, held: Queues) -> None:
    held.top[0] -= 1
    entry = held.free[held.top[0]]
    held.slots[entry], held.following[entry], held.told[entry] = slot, NONE, record
    if held.counts[run] == 0:
        held.first[run] = entry
    else:
        held.following[held.last[run]] = entry
    held.last[run] = entry
    held.counts[run] += 1
    held.held[slot] += 1


@borrowing
def enter(
    starts: Int64Array, runs: Int32Array, slots: Int32Array, most: int, held: Queues, released: Released
) -> None:
    """Rows enter, and nobody asks for records. Row r is slots[r], in runs[starts[r]:starts[r + 1]]."""
    for r in range(slots.shape[0]):
        for pair in range(starts[r], starts[r + 1]):
            _push(runs[pair], slots[r], 0, held)
            if held.counts[runs[pair]] > most:
                _pop(runs[pair], held, released)


@borrowing
def _close(run: int, slot: int, at: int, base: int, record: int, made: WindowVersions) -> None:
    if record >= base:
        made.valid_to[record - base] = at
        return
    count = made.filled[0]
    made.slots[count], made.runs[count], made.valid_from[count], made.valid_to[count] = slot, run, NEVER, at
    made.filled[0] += 1


@borrowing
def fold(
    at: Int64Array,
    rows: Int64Array,
    signs: Int8Array,
    starts: Int64Array,
    runs: Int32Array,
    slots: Int32Array,
    most: int,
    base: int,
    held: Queues,
    made: WindowVersions,
    released: Released,
) -> None:
    """Rows enter and leave. at, rows, signs: events by instant, those of one instant in the order of rows.

    Row r is slots[r], NONE of one that was not among the latest any more, in runs[starts[r]:starts[r + 1]].
    base: records have numbers from here on. made: with room for two records an event and run.
    """
    for event in range(at.shape[0]):
        r, instant = rows[event], at[event]
        slot = slots[r]
        if slot < 0:
            continue
        for pair in range(starts[r], starts[r + 1]):
            run = runs[pair]
            if signs[event] > 0:
                count = made.filled[0]
                made.slots[count], made.runs[count] = slot, run
                made.valid_from[count], made.valid_to[count] = instant, FOREVER
                made.filled[0] += 1
                _push(run, slot, base + count, held)
                if held.counts[run] > most:
                    oldest = held.slots[held.first[run]]
                    _close(run, oldest, instant, base, _pop(run, held, released), made)
            elif held.counts[run] > 0 and held.slots[held.first[run]] == slot:
                _close(run, slot, instant, base, _pop(run, held, released), made)


@borrowing
def clear(runs: Int32Array, held: Queues, released: Released) -> None:
    """All rows of some runs leave."""
    for place in range(runs.shape[0]):
        while held.counts[runs[place]] > 0:
            _pop(runs[place], held, released)


@borrowing
def listed(runs: Int32Array, held: Queues, slots: Int32Array, of: Int32Array) -> int:
    """Write the rows of some runs, each run's oldest first, and their runs; return how many there are."""
    count = 0
    for place in range(runs.shape[0]):
        entry = held.first[runs[place]] if held.counts[runs[place]] > 0 else np.int32(NONE)
        while entry >= 0:
            slots[count], of[count] = held.slots[entry], runs[place]
            count += 1
            entry = held.following[entry]
    return count
