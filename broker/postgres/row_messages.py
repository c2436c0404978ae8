"""Rows of an answer as messages, written by one pass over all columns, without the interpreter's lock.

| message           | a row is                                                                      |
|-------------------|-------------------------------------------------------------------------------|
| DataRow           | D, length, number of columns; a column: length (-1: NULL), text or binary       |
| CopyData, binary  | d, length, number of columns; the same                                         |
| CopyData, text, csv | d, length; columns divided by a delimiter; a line's end                      |

One message a row, as the protocol has it, also of COPY. What a column's texts are is in
:mod:`broker.postgres.column_texts`.

Cost: 5 to 20 ns a value, besides that of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel
from engine.model.batch import BoolArray, Int64Array

Bytes = npt.NDArray[np.uint8]

_NO_BYTES = np.zeros(0, np.uint8)
FEW = 32
"""So many rows are written without a kernel: to lend the interpreter's lock and wait for it takes longer."""


class Cells(NamedTuple):
    """The n values of a column as bytes. texts: those of all. ends: int64[n + 1], where each begins and ends.
    valid: bool[n]; None: no value is NULL.
    """

    texts: Bytes
    ends: Int64Array
    valid: BoolArray | None


class CopyForm(NamedTuple):
    """How COPY writes lines. null: the bytes of a NULL."""

    delimiter: int
    null: bytes


def data_rows(columns: Sequence[Cells], n: int, *, copied: bool = False) -> bytes:
    """n rows as DataRow, or as binary CopyData."""
    k = len(columns)
    if n <= FEW:
        return _few_rows(columns, n, b"d" if copied else b"D")
    texts, starts, ends, valid = _joined(columns, n)
    out = np.empty(len(texts) + n * (7 + 4 * k), np.uint8)
    size = _write_fields(texts, starts, ends, valid, ord("d" if copied else "D"), out)
    return out[:size].tobytes()


def copy_lines(columns: Sequence[Cells], n: int, form: CopyForm) -> bytes:
    """n rows as CopyData of lines."""
    texts, starts, ends, valid = _joined(columns, n)
    null = np.frombuffer(form.null, np.uint8)
    out = np.empty(len(texts) + n * (6 + len(columns) * (1 + len(null))), np.uint8)
    size = _write_lines(texts, starts, ends, valid, form.delimiter, null, out)
    return out[:size].tobytes()


def _few_rows(columns: Sequence[Cells], n: int, head: bytes) -> bytes:
    """As :func:`_write_fields`, a value at a time."""
    fields = []
    for one in columns:
        texts, ends = one.texts.tobytes(), one.ends.tolist()
        valid = [True] * n if one.valid is None else one.valid.tolist()
        fields.append(
            [
                (ends[at + 1] - ends[at]).to_bytes(4) + texts[ends[at] : ends[at + 1]] if valid[at] else _NULL
                for at in range(n)
            ]
        )
    count = len(columns).to_bytes(2)
    rows = [b"".join(row) for row in zip(*fields, strict=True)]
    return b"".join(b"%b%b%b%b" % (head, (len(row) + 6).to_bytes(4), count, row) for row in rows)


_NULL = b"\xff\xff\xff\xff"


def prepare() -> None:
    """Have the passes compiled, or loaded, so that no client waits for it."""
    n = FEW + 1
    cells = Cells(np.zeros(n, np.uint8), np.arange(n + 1), None)
    data_rows([cells], n)
    copy_lines([cells], n, CopyForm(9, b"\\N"))


def _joined(columns: Sequence[Cells], n: int) -> tuple[Bytes, Int64Array, Int64Array, npt.NDArray[np.bool_]]:
    """The texts of all columns behind each other; int64[k], where each column's begin; int64[k, n + 1], from
    there; bool[k, n].
    """
    k = len(columns)
    ends = np.empty((k, n + 1), np.int64)
    valid = np.ones((k, n), np.bool_)
    starts = np.zeros(k + 1, np.int64)
    for place, one in enumerate(columns):
        ends[place] = one.ends
        if one.valid is not None:
            valid[place] = one.valid
        starts[place + 1] = starts[place] + len(one.texts)
    texts = np.concatenate([one.texts for one in columns]) if columns else _NO_BYTES
    return texts, starts[:-1].copy(), ends, valid


@kernel
def _put_int32(value: int, out: Bytes, at: int) -> int:
    out[at] = (value >> 24) & 255
    out[at + 1] = (value >> 16) & 255
    out[at + 2] = (value >> 8) & 255
    out[at + 3] = value & 255
    return at + 4


@kernel
def _write_fields(
    texts: Bytes, starts: Int64Array, ends: Int64Array, valid: npt.NDArray[np.bool_], head: int, out: Bytes
) -> int:
    """Rows with the length before each value; returns how many bytes that are."""
    k, n = valid.shape
    at = 0
    for i in range(n):
        begin = at
        out[at] = head
        out[at + 5] = k >> 8
        out[at + 6] = k & 255
        at += 7
        for j in range(k):
            if not valid[j, i]:
                at = _put_int32(-1, out, at)
                continue
            first, last = starts[j] + ends[j, i], starts[j] + ends[j, i + 1]
            at = _put_int32(last - first, out, at)
            for place in range(first, last):
                out[at] = texts[place]
                at += 1
        _put_int32(at - begin - 1, out, begin + 1)
    return at


@kernel
def _write_lines(
    texts: Bytes,
    starts: Int64Array,
    ends: Int64Array,
    valid: npt.NDArray[np.bool_],
    delimiter: int,
    null: Bytes,
    out: Bytes,
) -> int:
    """Rows as lines; returns how many bytes that are."""
    k, n = valid.shape
    at = 0
    for i in range(n):
        begin = at
        out[at] = 100  # d
        at += 5
        for j in range(k):
            if j:
                out[at] = delimiter
                at += 1
            if not valid[j, i]:
                for byte in null:
                    out[at] = byte
                    at += 1
                continue
            for place in range(starts[j] + ends[j, i], starts[j] + ends[j, i + 1]):
                out[at] = texts[place]
                at += 1
        out[at] = 10
        at += 1
        _put_int32(at - begin - 1, out, begin + 1)
    return at
