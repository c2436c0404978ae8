"""Values of cells that are counted: DISTINCT calls, and the least value there is (MIN, MAX).

An *entry* is a value of a cell; ``counts`` int64[entries] says how many rows have it. The events of a fold
(:func:`engine.kernels.cells.fold`) are gone through once more, and what follows from them is noted for the
versions that the fold made.

The least value of a cell stands at the root of a pairing heap of its entries. An entry that no row has stays
in the heap until it comes to the root, or until the heaps are built anew.
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


@borrowing
def next_versions(before: Int32Array, following: Int32Array) -> None:
    """following[v] = the version of the same cell after v; NONE of the last."""
    following[:] = NONE
    for version in range(before.shape[0]):
        if before[version] >= 0:
            following[before[version]] = version


@borrowing
def first_versions(cells: Int32Array, before: Int32Array, cursor: Int32Array) -> None:
    """cursor[c] = the first version of each cell that has one."""
    for version in range(cells.shape[0]):
        if before[version] < 0:
            cursor[cells[version]] = version


@borrowing
def distinct(
    at: Int64Array,
    row: Int64Array,
    sign: Int8Array,
    starts: Int64Array,
    cells: Int32Array,
    entries: Int32Array,
    values: Int64Array,
    counts: Int64Array,
    state: Int64Array,
    cursor: Int32Array,
    begins: Int64Array,
    following: Int32Array,
    versions: Int64Array,
) -> None:
    """Fold rows whose value counts once a cell. entries: of each pair, NONE of a row that does not count.

    state: int64[cells, S]. cursor: the first version of each cell; moved on. versions: int64[versions, S].
    """
    width = state.shape[1]
    for event in range(at.shape[0]):
        r, instant, s = row[event], at[event], np.int64(sign[event])
        for pair in range(starts[r], starts[r + 1]):
            cell = cells[pair]
            version = cursor[cell]
            if before_first(begins, version):
                for k in range(width):
                    versions[version, k] = state[cell, k]
            if begins[version] != instant:
                version = following[version]
                cursor[cell] = version
            entry = entries[pair]
            if entry >= 0:
                counts[entry] += s
                if counts[entry] == (1 if s > 0 else 0):
                    for k in range(width):
                        state[cell, k] += s * values[r, k]
            for k in range(width):
                versions[version, k] = state[cell, k]


@borrowing
def before_first(begins: Int64Array, version: int) -> bool:
    """Whether a version is that of a cell before the step."""
    return bool(begins[version] == -(1 << 63))


@borrowing
def enter_distinct(
    starts: Int64Array,
    cells: Int32Array,
    entries: Int32Array,
    values: Int64Array,
    counts: Int64Array,
    state: Int64Array,
) -> None:
    """Rows enter, and nobody asks for versions."""
    for r in range(values.shape[0]):
        for pair in range(starts[r], starts[r + 1]):
            entry = entries[pair]
            if entry >= 0:
                counts[entry] += 1
                if counts[entry] == 1:
                    for k in range(values.shape[1]):
                        state[cells[pair], k] += values[r, k]


# --- heaps ------------------------------------------------------------------------------------------


class Heaps(NamedTuple):
    """keys: int64[entries, W], compared word by word, the order of values. By entry: counts, how many rows
    have it; heaped, whether it is in a heap; child and sibling. roots: by cell.
    """

    keys: Int64Array
    counts: Int64Array
    heaped: BoolArray
    roots: Int32Array
    child: Int32Array
    sibling: Int32Array


@borrowing
def _meld(one: int, other: int, keys: Int64Array, child: Int32Array, sibling: Int32Array) -> int:
    """One heap of two, NONE for an empty one; their root."""
    if one < 0:
        return other
    if other < 0:
        return one
    if comes_before(other, one, keys):
        one, other = other, one
    sibling[other] = child[one]
    child[one] = other
    return one


@borrowing
def _popped(root: int, keys: Int64Array, child: Int32Array, sibling: Int32Array) -> int:
    """The root of a heap without its root."""
    pairs, one = NONE, int(child[root])
    child[root] = NONE
    while one >= 0:
        other = int(sibling[one])
        following = int(sibling[other]) if other >= 0 else NONE
        sibling[one] = NONE
        if other >= 0:
            sibling[other] = NONE
        melded = _meld(one, other, keys, child, sibling)
        sibling[melded] = pairs
        pairs, one = melded, following
    root = NONE
    while pairs >= 0:
        following = int(sibling[pairs])
        sibling[pairs] = NONE
        root = _meld(root, pairs, keys, child, sibling)
        pairs = following
    return root


@step
def _enter(
    cell: int,
    entry: int,
    keys: Int64Array,
    counts: Int64Array,
    heaped: BoolArray,
    roots: Int32Array,
    child: Int32Array,
    sibling: Int32Array,
) -> None:
    counts[entry] += 1
    if not heaped[entry]:
        heaped[entry] = True
        child[entry] = sibling[entry] = NONE
        root = roots[cell]
        if root < 0:
            roots[cell] = entry
        elif comes_before(entry, root, keys):
            child[entry] = root
            roots[cell] = entry
        else:
            sibling[entry] = child[root]
            child[root] = entry


@step
def _least(
    cell: int,
    keys: Int64Array,
    counts: Int64Array,
    heaped: BoolArray,
    roots: Int32Array,
    child: Int32Array,
    sibling: Int32Array,
) -> int:
    """The entry of the least value that a row of a cell has; NONE."""
    while roots[cell] >= 0 and counts[roots[cell]] == 0:
        heaped[roots[cell]] = False
        roots[cell] = _popped(roots[cell], keys, child, sibling)
    return int(roots[cell])


@borrowing
def enter_heaps(starts: Int64Array, cells: Int32Array, entries: Int32Array, heaps: Heaps) -> None:
    """Rows enter. cells, entries: int32[pairs], NONE of a row that does not count."""
    for pair in range(starts[-1]):
        if entries[pair] >= 0:
            _enter(
                cells[pair],
                entries[pair],
                heaps.keys,
                heaps.counts,
                heaps.heaped,
                heaps.roots,
                heaps.child,
                heaps.sibling,
            )


@borrowing
def least(
    at: Int64Array,
    row: Int64Array,
    sign: Int8Array,
    starts: Int64Array,
    cells: Int32Array,
    entries: Int32Array,
    heaps: Heaps,
    cursor: Int32Array,
    begins: Int64Array,
    following: Int32Array,
    versions: Int32Array,
) -> None:
    """Fold rows; versions[v] = the entry of the least value then, NONE where no row counts."""
    keys, counts, heaped, roots, child, sibling = heaps
    for event in range(at.shape[0]):
        r, instant = row[event], at[event]
        for pair in range(starts[r], starts[r + 1]):
            cell = cells[pair]
            version = cursor[cell]
            if before_first(begins, version):
                versions[version] = _least(cell, keys, counts, heaped, roots, child, sibling)
            if begins[version] != instant:
                version = following[version]
                cursor[cell] = version
            entry = entries[pair]
            if entry >= 0 and sign[event] > 0:
                _enter(cell, entry, keys, counts, heaped, roots, child, sibling)
            elif entry >= 0:
                counts[entry] -= 1
            versions[version] = _least(cell, keys, counts, heaped, roots, child, sibling)


@borrowing
def roots(cells: Int32Array, heaps: Heaps, out: Int32Array) -> None:
    """out[i] = the entry of the least value of cells[i], NONE where no row counts."""
    for i in range(cells.shape[0]):
        out[i] = _least(
            cells[i], heaps.keys, heaps.counts, heaps.heaped, heaps.roots, heaps.child, heaps.sibling
        )


@borrowing
def build(cells: Int32Array, entries: Int32Array, heaps: Heaps) -> None:
    """Put entries, which are in none, into the heaps of their cells. int32[n] each."""
    for i in range(entries.shape[0]):
        heaps.counts[entries[i]] -= 1
        _enter(
            cells[i],
            entries[i],
            heaps.keys,
            heaps.counts,
            heaps.heaped,
            heaps.roots,
            heaps.child,
            heaps.sibling,
        )
