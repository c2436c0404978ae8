"""Many records given to the client library by one compiled loop, without the interpreter's lock.

``produce()`` of confluent-kafka takes some 1.3 us for a record with two headers, all of it with the
interpreter's lock, and has each delivery reported to Python. The loop calls what ``produce()`` calls,
rd_kafka_produceva of the very librdkafka that confluent-kafka is linked with, for the client that the given
Producer holds; so transactions, partitioning, limits and failures are that Producer's own. A record that the
library does not take is left to the caller, who gives it to ``produce()`` and hears what is wrong with it as
ever.

What is relied on beyond the two libraries' public interfaces is that a Producer's first member is its
rd_kafka_t. That is looked at before it is believed: the memory can be read, and the client that stands in it
says that it is this Producer's. Where the library cannot be bound (it is linked in without its symbols, has
another interface, another layout) there is no loop; the log says so once.

Cost: 0.3 to 0.5 us a record, some 30 us a call.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Producer, cimpl
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.model.batch import BoolArray, Int32Array, Int64Array
from topics.compiled import kernel
from topics.letters import Headers

FEW_RECORDS = 32
"""Fewer are given to ``produce()`` as quickly."""
VERSION_LEAST = 0x010600FF
"""The least version of librdkafka that has rd_kafka_produceva."""

_RKT, _PARTITION, _VALUE, _KEY, _MSGFLAGS, _HEADER = 2, 3, 4, 5, 7, 9
"""Tags of rd_kafka_vu_t, a struct of 9 words: the tag, then the value of the kind that the tag names."""
_VU_WORDS = 9
_COPY = 2
"""The library copies the record."""
_CLIENT_BYTES = 4_096
"""An rd_kafka_t has more."""

ColumnHeaders = Sequence[tuple[str, bytes | pa.LargeBinaryArray]]
"""Headers of many records, each with its value: the same for all, or one a record. No NULLs."""

log = logging.getLogger(__name__)


class _Library:
    """Functions of the librdkafka that confluent-kafka uses. Raises OSError, AttributeError."""

    def __init__(self) -> None:
        if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
            raise OSError("the words of this machine are others")
        library = ctypes.CDLL(cimpl.__file__)  # looks into what the module is linked with, too
        version = library.rd_kafka_version
        version.restype = ctypes.c_int
        if version() < VERSION_LEAST:
            raise OSError(f"librdkafka {version():#x} is older than {VERSION_LEAST:#x}")
        address, nothing, text = ctypes.c_void_p, None, ctypes.c_char_p
        self.opaque = _function(library.rd_kafka_opaque, address, address)
        self.topic_new = _function(library.rd_kafka_topic_new, address, address, text, address)
        self.topic_destroy = _function(library.rd_kafka_topic_destroy, nothing, address)
        self.error_destroy = _function(library.rd_kafka_error_destroy, nothing, address)
        self.begin = _function(library.rd_kafka_begin_transaction, address, address)
        self.produceva = ctypes.cast(library.rd_kafka_produceva, ctypes.c_void_p).value or 0
        one = pa.array([b""], pa.large_binary())  # the loop is compiled now, not in the first transaction
        nowhere = np.zeros(1, np.int32)
        producer, failed = _Producer(self.produceva, 0), np.zeros(1, np.int64)
        _given(producer, 0, one, one, [("", one)], nowhere, len(one), failed)


def _function(function: Any, result: Any, *arguments: Any) -> Any:
    function.restype = result
    function.argtypes = arguments
    return function


@lru_cache(1)
def library() -> _Library | None:
    """None where it cannot be bound, which is logged."""
    try:
        return _Library()
    except (OSError, AttributeError) as missing:
        log.warning("changes are written by the slower way, one by one: %s", missing)
        return None


def rows_of(
    values: pa.LargeBinaryArray,
    keys: pa.LargeBinaryArray,
    partitions: Int32Array,
    headers: ColumnHeaders,
    start: int,
    stop: int,
) -> Iterator[tuple[bytes | None, bytes, int, Headers]]:
    """Give the records one by one, as ``produce()`` takes them: value, key, partition, headers."""
    n = stop - start
    told = [
        repeat((name, value), n)
        if isinstance(value, bytes)
        else [(name, one) for one in value.slice(start, n).to_pylist()]
        for name, value in headers
    ]
    own = map(list, zip(*told, strict=True)) if told else repeat([], n)
    columns = values.slice(start, n).to_pylist(), keys.slice(start, n).to_pylist()
    yield from zip(*columns, partitions[start:stop].tolist(), own, strict=True)


@lru_cache(1)
def _tell_unknown_layout() -> None:
    log.warning("changes are written by the slower way, one by one: the client library has another layout")


class ProduceLoop:
    """The loop for one Producer, which it does not keep open. Used by the Producer's thread alone."""

    def __init__(self, producer: Producer, bound: _Library) -> None:
        self._producer = producer
        self._library = bound

    @classmethod
    def of(cls, producer: Producer) -> ProduceLoop | None:
        """None where there can be no loop."""
        bound = library()
        if bound is None:
            return None
        client = _client(producer)
        if not client or not _is_readable(client) or bound.opaque(client) != id(producer):
            _tell_unknown_layout()
            return None
        return cls(producer, bound)

    def begin_transaction(self) -> bool:
        """Begin a transaction; False: it has not begun, and ``begin_transaction()`` tells why.

        The Producer's own holds the interpreter's lock until a thread of the library has answered.
        """
        client = _client(self._producer)
        if not client:
            return False
        error = self._library.begin(client)
        if error:
            self._library.error_destroy(error)
        return not error

    def send(
        self,
        topic: str,
        values: pa.LargeBinaryArray,
        keys: pa.LargeBinaryArray,
        headers: ColumnHeaders,
        partitions: Int32Array,
        first: int = 0,
    ) -> int:
        """Give the records from place ``first`` on to the library, which copies them; a NULL value deletes.

        keys: without NULL. partitions: one a record, -1: as its key says. Returns the place of the first
        record that the library did not take, or how many records there are.
        """
        client = _client(self._producer)
        handle = self._library.topic_new(client, topic.encode(), None) if client else None
        if not handle:
            return first
        failed = np.zeros(1, np.int64)
        try:
            given = _Producer(self._library.produceva, client)
            return _given(given, handle, values, keys, headers, partitions, first, failed)
        finally:
            self._library.topic_destroy(handle)
            if failed[0]:
                self._library.error_destroy(int(failed[0]))


class _Producer(NamedTuple):
    """Addresses: of rd_kafka_produceva, and of the rd_kafka_t."""

    produceva: int
    client: int


class _Keys(NamedTuple):
    """Texts of records: the address of their bytes, and int64[n + 1], where each begins and ends."""

    data: int
    offsets: Int64Array


class _Values(NamedTuple):
    """As :class:`_Keys`; there: bool[n], those that are not NULL."""

    data: int
    offsets: Int64Array
    there: BoolArray


class _Varying(NamedTuple):
    """Headers that differ between records: by header the row of words, the address, and the offsets."""

    rows: Int64Array
    data: Int64Array
    offsets: Int64Array


def _given(
    producer: _Producer,
    handle: int,
    values: pa.LargeBinaryArray,
    keys: pa.LargeBinaryArray,
    headers: ColumnHeaders,
    partitions: Int32Array,
    first: int,
    failed: Int64Array,
) -> int:
    """As :meth:`ProduceLoop.send`. failed: int64[1], gets the rd_kafka_error_t of what is not taken."""
    fixed, words, varying = _words(handle, headers)
    varied = [_data(headers[place][1]) for place in varying]
    stopped = _produce(
        producer,
        words,
        _Values(*_data(values), values.is_valid().to_numpy(zero_copy_only=False)),
        _Keys(*_data(keys)),
        _Varying(
            np.array(varying, np.int64) + _HEADERS_FROM,
            np.array([data for data, _ in varied], np.int64),
            np.array([offsets for _, offsets in varied], np.int64).reshape(len(varied), len(keys) + 1),
        ),
        np.ascontiguousarray(partitions, np.int32),
        first,
        failed,
    )
    del fixed  # the words point into it
    return int(stopped)


_HEADERS_FROM = 5
"""Before them stand topic, flags, partition, value, key."""


def _words(handle: int, headers: ColumnHeaders) -> tuple[npt.NDArray[np.uint8], Int64Array, list[int]]:
    """Names and values that are the same for all records; int64[5 + headers, 9], one rd_kafka_vu_t a row; the
    places of the headers that vary.
    """
    texts: list[bytes] = []
    varying: list[int] = []
    for place, (name, value) in enumerate(headers):
        texts += [name.encode() + b"\0", value if isinstance(value, bytes) else b""]
        if not isinstance(value, bytes):
            varying.append(place)
    fixed = np.frombuffer(b"".join(texts) + b"\0", np.uint8).copy()
    starts = fixed.ctypes.data + np.cumsum([0, *map(len, texts)])
    words = np.zeros((_HEADERS_FROM + len(headers), _VU_WORDS), np.int64)
    words[:_HEADERS_FROM, 0] = _RKT, _MSGFLAGS, _PARTITION, _VALUE, _KEY
    words[:2, 1] = handle, _COPY
    words[_HEADERS_FROM:, 0] = _HEADER
    words[_HEADERS_FROM:, 1] = starts[:-1:2]
    words[_HEADERS_FROM:, 2] = starts[1::2]
    words[_HEADERS_FROM:, 3] = [len(text) for text in texts[1::2]]
    return fixed, words, varying


_NO_BYTES = np.zeros(1, np.uint8)


def _data(texts: pa.LargeBinaryArray) -> tuple[int, Int64Array]:
    """Where the bytes of an array stand, and int64[n + 1], where each begins and ends in them."""
    _, offsets, data = texts.buffers()
    found = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return (data.address if data is not None and data.size else _NO_BYTES.ctypes.data), found


def _client(producer: Producer) -> int:
    """What stands where a Producer has its rd_kafka_t, behind what every Python object begins with."""
    return ctypes.c_void_p.from_address(id(producer) + object.__basicsize__).value or 0


def _is_readable(address: int) -> bool:
    """Whether memory is there: the system does not read for us what we may not."""
    write = _function(
        ctypes.CDLL(None, use_errno=True).write,
        ctypes.c_ssize_t,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_size_t,
    )
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        return bool(write(writing, address, _CLIENT_BYTES) == _CLIENT_BYTES)
    finally:
        os.close(reading)
        os.close(writing)


@intrinsic
def _called_by_compiled_code(_: Any, function: Any, client: Any, words: Any, count: Any) -> Any:
    """What the C function at an address gives for three words."""

    def generate(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        pointer = builder.inttoptr(arguments[0], ir.FunctionType(word, [word] * 3).as_pointer())
        return builder.call(pointer, arguments[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


_called: Any = _called_by_compiled_code


@kernel
def _produce(
    producer: _Producer,
    words: Int64Array,
    values: _Values,
    keys: _Keys,
    headers: _Varying,
    partitions: Int32Array,
    first: int,
    failed: Int64Array,
) -> int:
    """The place after the last record that was taken; failed: then has the rd_kafka_error_t."""
    produceva, client = producer
    value_data, value_offsets, there = values
    key_data, key_offsets = keys
    header_rows, header_data, header_offsets = headers
    n = len(partitions)
    address = words.ctypes.data
    for i in range(first, n):
        words[2, 1] = partitions[i]
        words[3, 1] = value_data + value_offsets[i] if there[i] else 0
        words[3, 2] = value_offsets[i + 1] - value_offsets[i] if there[i] else 0
        words[4, 1] = key_data + key_offsets[i]
        words[4, 2] = key_offsets[i + 1] - key_offsets[i]
        for h in range(len(header_rows)):
            words[header_rows[h], 2] = header_data[h] + header_offsets[h, i]
            words[header_rows[h], 3] = header_offsets[h, i + 1] - header_offsets[h, i]
        error: int = _called(produceva, client, address, len(words))
        if error != 0:
            failed[0] = error
            return i
    return n
