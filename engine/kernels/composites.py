"""Composites: those that live, and from them to places in relations.

A composite is a row of int32, one part an input in the order of the shape, each relative to an origin.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


@kernel
def keep_alive(
    parts: Int32Array,
    count: int,
    origin: Int64Array,
    floor: Int64Array,
    target: Int32Array,
    at: int,
    to: Int64Array,
) -> int:
    """Copy the composites all of whose parts are at or above floor to target[at:], less ``to``.

    Returns where they end. O(composites).
    """
    inputs = floor.shape[0]
    for c in range(count):
        alive = True
        for j in range(inputs):
            if parts[c, j] + origin[j] < floor[j]:
                alive = False
        if alive:
            for j in range(inputs):
                target[at, j] = parts[c, j] + origin[j] - to[j]
            at += 1
    return at


@kernel
def count_alive(parts: Int32Array, count: int, origin: Int64Array, floor: Int64Array) -> int:
    """How many composites have all parts at or above floor."""
    inputs = floor.shape[0]
    alive = 0
    for c in range(count):
        lives = True
        for j in range(inputs):
            if parts[c, j] + origin[j] < floor[j]:
                lives = False
        alive += lives
    return alive


@kernel
def pick(
    parts: Int32Array,
    count: int,
    origin: Int64Array,
    first: Int64Array,
    at: Int64Array,
    places: Int32Array,
    out: Int64Array,
    found: int,
) -> int:
    """The composites whose parts all have a place.

    places[at[j] + ordinal - first[j]], at[j] <= . < at[j + 1], is the place of a row of input j, or -1. out:
    int64[inputs, room], columns from ``found`` on are written as far as there is room. Returns how many there
    are, perhaps more than room. O(composites).
    """
    inputs = first.shape[0]
    room = out.shape[1]
    line = np.zeros(inputs, np.int64)
    for c in range(count):
        inside = True
        for j in range(inputs):
            row = parts[c, j] + origin[j] - first[j]
            if row < 0 or row >= at[j + 1] - at[j]:
                inside = False
                break
            place = places[at[j] + row]
            if place < 0:
                inside = False
                break
            line[j] = place
        if inside:
            if found < room:
                for j in range(inputs):
                    out[j, found] = line[j]
            found += 1
    return found


@kernel
def spell(parts: Int32Array, count: int, sizes: Int64Array, out: Int64Array, at: int) -> None:
    """Combinations as places: out[j, at + c], the first input's as they are, all others counted from the end.

    out: int64[inputs, room]. O(count).
    """
    inputs = sizes.shape[0]
    for c in range(count):
        out[0, at + c] = parts[c, 0]
    for j in range(1, inputs):
        last = sizes[j] - 1
        for c in range(count):
            out[j, at + c] = last - parts[c, j]


@kernel
def arrange(places: Int64Array, before: Int64Array, starts: Int64Array, out: Int64Array) -> None:
    """out: the tuples ``before`` by ascending places[tuple], stably.

    starts: int64[places there are + 1], zero, overwritten. O(tuples + places).
    """
    for i in range(before.shape[0]):
        starts[places[before[i]] + 1] += 1
    for place in range(1, starts.shape[0]):
        starts[place] += starts[place - 1]
    for i in range(before.shape[0]):
        place = places[before[i]]
        out[starts[place]] = before[i]
        starts[place] += 1
