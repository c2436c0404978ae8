"""Changes of one query in an order that is always the same, to be written piece by piece.

A step that is replayed causes the same changes, at one instant perhaps in another order. Whoever writes them
in several transactions needs to know by their number which were written:

* rows by a key are ordered by (instant, key), those of one instant and key as they were told: they are one
  record, or belong together, and are never cut apart;
* all others by (instant, what went before what came, all columns, copy): equal ones are interchangeable.

Cost: O(n log n) to order, about 0.2 us a change; O(changes asked for) to cut.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.changes import Changes
from engine.model.json_texts import json_values
from topics.destination import Destination
from topics.results import codes_of_rows


def in_order(changes: Changes, to: Destination) -> Changes:
    """The changes of one query, ordered."""
    n = len(changes)
    told: list[npt.NDArray[np.integer]] = [changes.at_ms]
    if to.key is None:
        told.append(changes.weights)
    keys = [pa.array(numbers) for numbers in told if n and bool((numbers != numbers[0]).any())]
    table = changes.table if to.key is None else changes.table.select(list(to.key))
    for column in table.columns:
        keys += _sortable(column)
    if to.key is None and changes.copies is not None:
        keys.append(pa.array(changes.copies))
    if not keys or n < 2:
        return changes
    names = [str(number) for number in range(len(keys))]
    order = pc.sort_indices(
        pa.Table.from_arrays(keys, names), sort_keys=[(one, "ascending") for one in names]
    ).to_numpy()
    return replace(
        changes,
        table=changes.table.take(order),
        weights=changes.weights[order],
        at_ms=changes.at_ms[order],
        copies=None if changes.copies is None else changes.copies[order],
    )


def _sortable(column: pa.ChunkedArray) -> list[pa.Array]:
    """Arrays that order values as different as their texts are: 0 and -0, NULL and NaN are two."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_null(array.type):
        return []
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        doubles = np.ascontiguousarray(array.to_numpy(zero_copy_only=False), np.float64)
        bits = pa.array(doubles.view(np.int64))
        return [bits] if not array.null_count else [array.is_valid().cast(pa.int8()), bits]
    if pa.types.is_boolean(array.type):
        return [array.cast(pa.int8())]
    if isinstance(array, pa.ExtensionArray):
        return [array.storage]
    if pa.types.is_nested(array.type):
        return [json_values(array)]
    return [array]


def border(changes: Changes, to: Destination, start: int, wanted: int) -> int:
    """Where ordered changes can be cut: about ``wanted`` after ``start``, and at least one."""
    n = len(changes)
    wanted = max(1, wanted)
    while start + wanted < n:
        if to.key is None:
            return start + wanted
        found = _borders(changes, to.key, start, start + wanted + 1)
        if len(found):
            return start + int(found[-1])
        wanted *= 2
    return n


def _borders(changes: Changes, key: tuple[int, ...], start: int, stop: int) -> npt.NDArray[np.int64]:
    """How many of the changes there are before each that has another instant or key than the one before."""
    instants = changes.at_ms[start:stop]
    differs = instants[1:] != instants[:-1]
    if key:
        codes = codes_of_rows(changes.table.slice(start, stop - start).select(list(key)))
        differs |= codes[1:] != codes[:-1]
    return np.flatnonzero(differs) + 1
