"""What goes between the worker and a process of users' functions: frames over a socket pair.

    question   kind (u8), length of the name (u8), length of the body (u32), name, body
    answer     length of the facts (u32), length of the body (u32), facts (JSON), body

A body is an Arrow stream of one batch: of a question a column for each argument; of an answer the results and
which rows failed. Nothing is pickled. What a process sends is checked, as far as it could do harm: lengths,
types, and the arrays themselves.

Beside the socket they share a few bytes of an unlinked file, in which the process notes each call before it
begins: how many began, and the first row of the last one.
"""

from __future__ import annotations

import json
import mmap
import socket
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from engine.model.batch import Column
from engine.model.expressions import UserFunction
from engine.model.types import Type
from engine.model.user_calls import REASONS, CallOutcome, Reason

QUESTION = struct.Struct(">BBI")
ANSWER = struct.Struct(">II")
CALLS = struct.Struct("=qq")

ALL, ONE_BY_ONE = 0, 1
"""Kinds of questions: calls as the function is declared, or with single rows."""

FACTS_BYTES_MAX = 4_096
BODY_BYTES_MAX = 1 << 30

READY = b"R"
"""A process sends it once its modules are loaded."""


class BrokenFrame(Exception):
    """What came is no answer to what was asked."""


class CallNotes:
    """The bytes that both share. One process writes, the worker reads."""

    def __init__(self, file: int) -> None:
        """file: of CALLS.size bytes; it may be closed afterwards."""
        self._bytes = mmap.mmap(file, CALLS.size)
        self._count = 0

    def begin(self, row: int) -> None:
        """A call begins, for rows from this one on."""
        self._count += 1
        CALLS.pack_into(self._bytes, 0, self._count, row)

    def read(self) -> tuple[int, int]:
        """(calls that began, first row of the last of them)."""
        count, row = CALLS.unpack_from(self._bytes, 0)
        return count, row

    def close(self) -> None:
        """Let go of the bytes."""
        self._bytes.close()


def notes_file() -> Any:
    """A file for :class:`CallNotes` that has no name."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  whoever asks closes it
    file.write(bytes(CALLS.size))
    file.flush()
    return file


def question(function: UserFunction, columns: Sequence[Column], *, one_by_one: bool) -> bytes:
    """Ask to call a function for rows that have values."""
    body = _stream([column.to_arrow() for column in columns])
    name = function.name.encode()
    kind = ONE_BY_ONE if one_by_one else ALL
    return QUESTION.pack(kind, len(name), len(body)) + name + body


def asked(
    read: Callable[[int], bytes], functions: dict[str, UserFunction]
) -> tuple[UserFunction, list[Column], bool]:
    """(function, columns, one by one) of the next question. read: exactly so many bytes."""
    kind, name, size = QUESTION.unpack(read(QUESTION.size))
    function = functions[read(name).decode()]
    batch = _batch(read(size))
    columns = [
        Column.from_arrow(type_, column)
        for type_, column in zip(function.arguments, batch.columns, strict=True)
    ]
    return function, columns, kind == ONE_BY_ONE


def answer(outcome: CallOutcome) -> bytes:
    """What calls came to."""
    facts = json.dumps({"reasons": dict(outcome.reasons), "told": outcome.told}).encode()
    body = _stream([outcome.results.to_arrow(), pa.array(outcome.failed)])
    return ANSWER.pack(len(facts), len(body)) + facts + body


def answered(read: Callable[[int], bytes], type_: Type, n: int) -> CallOutcome:
    """The next answer, of n rows. Raises BrokenFrame, and what ``read`` does."""
    facts_size, size = ANSWER.unpack(read(ANSWER.size))
    if facts_size > FACTS_BYTES_MAX or size > BODY_BYTES_MAX:
        raise BrokenFrame("lengths")
    facts, body = read(facts_size), read(size)
    try:
        told = json.loads(facts)
        reasons: Counter[Reason] = Counter(
            {cast("Reason", name): int(count) for name, count in told["reasons"].items() if name in REASONS}
        )
        batch = _batch(body)
        results, failed = batch.columns
        if results.type != type_.arrow or failed.type != pa.bool_() or batch.num_rows != n:
            raise BrokenFrame("types")
        wrong: np.ndarray[Any, np.dtype[np.bool_]] = failed.to_numpy(zero_copy_only=False)
        if reasons.total() != int(np.count_nonzero(wrong)):
            raise BrokenFrame("counts")
        text = told["told"]
        return CallOutcome(Column.from_arrow(type_, results), wrong, reasons, text and str(text))
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as failure:
        raise BrokenFrame("content") from failure


def exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes. Raises EOFError where the other side is gone."""
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _stream(columns: Sequence[pa.Array]) -> bytes:
    batch = pa.RecordBatch.from_arrays(list(columns), [str(place) for place in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return cast("bytes", sink.getvalue().to_pybytes())


def _batch(body: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        batch = reader.read_next_batch()
    batch.validate(full=True)
    return batch
