"""Values of any column as PostgreSQL writes them: arrays by their elements, others as
:mod:`broker.postgres.column_texts` has them.

| form   | an array of n elements                                                                 |
|--------|----------------------------------------------------------------------------------------|
| text   | {1,2}; NULL for one that is NULL, quotes around what could be taken for something else |
| binary | dimensions (1; of none 0), whether one is NULL, oid of the elements, n, 1; the         |
|        | elements, each behind its length                                                       |

Source: PostgreSQL's documentation, "Array Input and Output Syntax", and its array_send.
Cost: some 100 ns an element, by Arrow's kernels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from broker.postgres import types
from broker.postgres.column_texts import cut, scalar_cells, scalar_text
from broker.postgres.row_messages import Cells

_QUOTED = (types.TEXT, types.BYTEA, types.TIMESTAMPTZ, types.JSON)
"""Types whose texts may hold what divides elements, or nothing."""
_HEAD_BYTES, _EMPTY_BYTES = 20, 12


def cells_of(column: pa.Array, oid: int, form: int) -> Cells:
    """The values of a column that has the type ``oid``. form: 0 text, 1 binary."""
    element = types.ELEMENTS.get(oid)
    if element is None:
        return scalar_cells(column, oid, form)
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    written = text_of(column, oid) if form == 0 else _binaries(column, element)
    return Cells(*cut(written), valid)


def text_of(column: pa.Array, oid: int) -> pa.Array:
    """string[n], or binary[n]: each value's text; NULL is NULL, or any text."""
    element = types.ELEMENTS.get(oid)
    if element is None:
        return scalar_text(column, oid)
    offsets, values = _flat(column)
    texts = pc.cast(scalar_text(values, element), pa.string())
    if element in _QUOTED:
        texts = _quoted(texts)
    texts = pc.if_else(values.is_valid(), texts, "NULL")
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts), ",")
    return pc.binary_join_element_wise("{", joined, "}", "")


def _flat(column: pa.ListArray) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """int32[n + 1], where the elements of each array begin; the elements of all."""
    offsets = column.offsets.to_numpy()
    return offsets - offsets[0], column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _quoted(texts: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(texts, r'^$|[{}",\\\s\v]|^(?i:null)$')
    if not pc.any(special).as_py():
        return texts
    escaped = pc.replace_substring_regex(texts, r'(["\\])', r"\\\1")
    return pc.if_else(special, pc.binary_join_element_wise('"', escaped, '"', ""), texts)


def _binaries(column: pa.ListArray, element: int) -> pa.Array:
    """binary[n]."""
    offsets, values = _flat(column)
    cells = scalar_cells(values, element, 1)
    sizes = np.diff(cells.ends)
    if cells.valid is not None:
        sizes = np.where(cells.valid, sizes, -1)
    heads = _binary(np.ascontiguousarray(sizes, ">i4").view(np.uint8), np.arange(len(values) + 1) * 4)
    bodies = _binary(cells.texts, cells.ends)
    if cells.valid is not None:
        bodies = pc.if_else(pa.array(cells.valid), bodies, b"")
    each = pc.binary_join_element_wise(heads, bodies, b"")
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), each), b"")
    return pc.binary_join_element_wise(_heads(offsets, cells, element), joined, b"")


def _heads(offsets: npt.NDArray[np.int32], cells: Cells, element: int) -> pa.Array:
    """What stands before the elements of each array."""
    counts = np.diff(offsets)
    words = np.zeros((len(counts), 5), ">i4")
    words[:, 0] = counts > 0
    if cells.valid is not None:
        nulls = np.concatenate([[0], np.cumsum(~cells.valid)])
        words[:, 1] = nulls[offsets[1:]] > nulls[offsets[:-1]]
    words[:, 2], words[:, 3], words[:, 4] = element, counts, 1
    is_kept = np.ones((len(counts), _HEAD_BYTES), np.bool_)
    is_kept[counts == 0, _EMPTY_BYTES:] = False
    ends = np.concatenate([[0], np.cumsum(is_kept.sum(axis=1))])
    return _binary(words.view(np.uint8)[is_kept], ends)


def _binary(data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> pa.Array:
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)
