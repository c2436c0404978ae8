"""Loops over entries of state buffers (:mod:`engine.dataflow.buffers`) that lie side by side or in a ring.

An entry is a place and the instant of its exit, in halves of ms.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NONE = -1
# --- lists of entries side by side ----------------------------------------------------------------


@kernel
def split(
    places: Int32Array,
    exits: Int64Array,
    count: int,
    until: int,
    gone_places: Int32Array,
    gone_exits: Int64Array,
) -> int:
    """Move the entries whose exit is at ``until`` or before out of the first ``count``: they are written to
    gone_places and gone_exits, and the others stay, in their order, as the first entries. Return how many
    were written.
    """
    gone = 0
    for i in range(count):
        place, exit_at = places[i], exits[i]
        if exit_at <= until:
            gone_places[gone], gone_exits[gone] = place, exit_at
            gone += 1
        else:
            places[i - gone], exits[i - gone] = place, exit_at
    return gone


@kernel
def _home(place: int, mask: int) -> int:
    return int(((np.int64(place) * 0x9E3779B1) >> 7) & mask)


@kernel
def hashed(wanted: Int32Array, start: int, stop: int) -> Int32Array:
    """A table of wanted[start:stop] by place: int32[a power of two]."""
    size = 8
    while size < 2 * (stop - start):
        size *= 2
    table = np.full(size, NONE, np.int32)
    for i in range(start, stop):
        home = _home(wanted[i], size - 1)
        while table[home] != NONE:
            home = (home + 1) & (size - 1)
        table[home] = i
    return table


@kernel
def is_wanted(place: int, exit_at: int, wanted: Int32Array, exits: Int64Array, table: Int32Array) -> bool:
    """Whether an entry is among those of a table."""
    mask = table.shape[0] - 1
    home = _home(place, mask)
    while table[home] != NONE:
        i = table[home]
        if wanted[i] == place and exits[i] == exit_at:
            return True
        home = (home + 1) & mask
    return False


@kernel
def leave_out(
    places: Int32Array, exits: Int64Array, count: int, gone: Int32Array, gone_exits: Int64Array
) -> int:
    """Remove entries from the first ``count``, which stay in their order; return how many were found."""
    table = hashed(gone, 0, gone.shape[0])
    found = 0
    for i in range(count):
        if is_wanted(places[i], exits[i], gone, gone_exits, table):
            found += 1
        else:
            places[i - found], exits[i - found] = places[i], exits[i]
    return found


# --- a ring, exits ascending ----------------------------------------------------------------------


@kernel
def first_after(exits: Int64Array, head: int, count: int, instant: int) -> int:
    """How many of the first ``count`` entries of a ring have an exit at an instant or before. O(log count).

    exits: int64[a power of two], ascending from ``head`` on.
    """
    mask = exits.shape[0] - 1
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if exits[(head + middle) & mask] <= instant:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def cross_out(
    places: Int32Array,
    exits: Int64Array,
    head: int,
    count: int,
    gone: Int32Array,
    gone_exits: Int64Array,
) -> tuple[int, int]:
    """The places of entries of a ring become NONE; return how many were found and how many entries visited:
    those that leave at the same instant, and one for each step of the search for them.
    """
    mask = exits.shape[0] - 1
    found, visited = 0, 0
    for i in range(gone.shape[0]):
        at = first_after(exits, head, count, gone_exits[i] - 1)
        visited += steps_of_search(count)
        while at < count and exits[(head + at) & mask] == gone_exits[i]:
            visited += 1
            if places[(head + at) & mask] == gone[i]:
                places[(head + at) & mask] = NONE
                found += 1
                break
            at += 1
    return found, visited


@kernel
def steps_of_search(count: int) -> int:
    """The number of steps of a bisection over ``count`` entries."""
    steps = 0
    while count > 0:
        steps, count = steps + 1, count >> 1
    return steps
