"""Columns of many JSON records at once, by Arrow's reader; what it refuses, :mod:`topics.careful` decides.

The reader takes plain members and what stands at paths of members (``$.meta.fw``) in one pass: a path is a
struct in a struct. Elements of arrays, nested values, and two columns that would want one member are found
apart, by their places in the bytes (:mod:`topics.spans`). So are all paths of several steps where the reader
refused the records, since it takes no path that leads through a number or a text, which is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from engine.model.batch import Column
from engine.model.nested.canonical import Misfit, canonical
from engine.model.paths import Path, value_at
from engine.model.source import Field, Stream
from engine.model.types import DAY_MAX, DAY_MIN, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Kind, Type
from topics.members import Layout
from topics.scan import ends_of
from topics.spans import extraction, flat_records, texts_at

_PIECE_BYTES_MAX = 256 * 1024 * 1024


class _Placed(NamedTuple):
    """A column, and the path to its value in a record."""

    field: Field
    path: Path


def columns_of(stream: Stream, layout: Layout, records: list[bytes]) -> tuple[Column, ...] | None:
    """The columns of records of one layout that are all as they should be, else None."""
    data = b"\n".join(records)
    if len(data) > _PIECE_BYTES_MAX:
        return None
    if not is_utf8(data):
        return None
    names = iter(layout.names)
    placed = [_Placed(one, (next(names),) if one.path is None else one.path) for one in stream.schema]
    within, apart = _divided(placed)
    found = _read(stream, within, data, records[0], len(records))
    if found is None:
        deep = [one for one in within if len(one.path) > 1]
        if not deep:
            return None
        within = [one for one in within if len(one.path) == 1]
        apart += deep
        found = _read(stream, within, data, records[0], len(records))
    if found is None:
        return None
    if apart:
        more = _apart(stream, apart, data, records)
        if more is None:
            return None
        found |= more
    return tuple(found[one.name] for one in stream.schema)


def is_utf8(data: bytes) -> bool:
    """Whether bytes, fewer than 2 GiB, are UTF-8: in a tenth of the time of ``data.decode()``."""
    offsets = pa.py_buffer(np.array([0, len(data)], np.int32))
    try:
        pa.StringArray.from_buffers(1, offsets, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _divided(placed: Iterable[_Placed]) -> tuple[list[_Placed], list[_Placed]]:
    """The columns that the reader takes, no two of which want one member or a part of it, and the others."""
    within, apart = [], []
    ends: set[Path] = set()
    passed: set[Path] = set()
    for one in placed:
        steps = [one.path[:stop] for stop in range(1, len(one.path) + 1)]
        is_plain = one.field.type.logical is None and all(isinstance(step, str) for step in one.path)
        if not is_plain or not steps or one.path in passed or not ends.isdisjoint(steps):
            apart.append(one)
            continue
        within.append(one)
        ends.add(one.path)
        passed.update(steps[:-1])
    return within, apart


def _apart(
    stream: Stream, placed: Sequence[_Placed], data: bytes, records: Sequence[bytes]
) -> dict[str, Column] | None:
    """Columns by name, of records that are JSON; None: not all are as they should be."""
    bytes_ = np.frombuffer(data, np.uint8)
    wanted = extraction(tuple(dict.fromkeys(path for _, path in placed)))
    spans, odd = wanted.spans(bytes_, ends_of(records))
    if odd.any():
        return None
    spans_of = {one.name: spans[:, wanted.paths.index(path)] for one, path in placed}
    found: dict[str, Column] = {}
    for one, _ in placed:
        if one.type.logical is not None:
            column = _nested(one, texts_at(bytes_, spans_of[one.name]))
            if column is None:
                return None
            found[one.name] = column
    plain = [one for one, _ in placed if one.type.logical is None]
    if plain:
        names = [f"c{place}" for place in range(len(plain))]
        lines = flat_records(bytes_, np.stack([spans_of[one.name] for one in plain], axis=1), names)
        flat = [_Placed(one, (name,)) for one, name in zip(plain, names, strict=True)]
        columns = _read(stream, flat, lines, lines[: lines.index(b"\n")], len(records))
        if columns is None:
            return None
        found |= columns
    return found


def _nested(field: Field, texts: pa.StringArray) -> Column | None:
    """A column of a logical type, of JSON texts; None: not all are of it. Each text that occurs is looked at
    once.
    """
    encoded = texts.dictionary_encode()
    try:
        made = [canonical(field.type, text) for text in encoded.dictionary.to_pylist()]
    except Misfit:
        return None
    found: dict[str, int] = {}
    codes = np.array([-1 if one is None else found.setdefault(one, len(found)) for one in made], np.int32)
    indices = encoded.indices.fill_null(len(made)).to_numpy(zero_copy_only=False)
    values = np.append(codes, np.int32(-1))[indices]
    valid = values >= 0
    if not valid.all() and not field.nullable:
        return None
    strings = pa.array(list(found), pa.string())
    return Column(field.type, np.maximum(values, 0), None if valid.all() else valid, strings)


def _read(
    stream: Stream, placed: Sequence[_Placed], data: bytes, first: bytes, n: int
) -> dict[str, Column] | None:
    """Columns of n records by name, else None. first: a record whose timestamps are written as those of
    all.
    """
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=_reading_schema(placed, first), unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != n:
            return None
        columns = {}
        for field, (head, *inner) in placed:
            array = table.column(str(head)).combine_chunks()
            for step in inner:
                array = pc.struct_field(array, str(step))
            if array.null_count and (not field.nullable or field.name == stream.timestamp_column):
                return None
            column = Column.decoded(field.type, _as_declared(field.type, array))
            if not _within_the_calendar(column):
                return None
            columns[field.name] = column
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return columns


def _within_the_calendar(column: Column) -> bool:
    """Whether dates and timestamps lie in the years 1 to 9999. What stands for NULL is 0."""
    limits = {Kind.DATE: (DAY_MIN, DAY_MAX), Kind.TIMESTAMP: (TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX)}
    if column.type.kind not in limits or not len(column):
        return True
    low, high = limits[column.type.kind]
    return bool(column.values.min() >= low and column.values.max() <= high)


def _reading_schema(placed: Sequence[_Placed], first: bytes) -> pa.Schema:
    """The members that the columns stand in. first: as :func:`_read` has it."""
    try:
        record = orjson.loads(first)
    except ValueError:  # the reader will tell
        record = None
    # Without columns the reader tells no rows; the member of this name, if there is one, is refused.
    return pa.schema(_members(placed, 0, record) or [pa.field("", pa.null())])


def _members(placed: Sequence[_Placed], depth: int, record: Any) -> list[pa.Field]:
    """The members at a depth of the paths of these columns, which are the same up to there."""
    by_name: dict[str | int, list[_Placed]] = {}
    for one in placed:
        by_name.setdefault(one.path[depth], []).append(one)
    found = []
    for name, some in by_name.items():
        (field, path), *_ = some
        if len(path) == depth + 1:
            type_ = _reading_type(field.type, value_at(path, record))
        else:
            type_ = pa.struct(_members(some, depth + 1, record))
        found.append(pa.field(str(name), type_))
    return found


def _reading_type(type_: Type, first: Any) -> pa.DataType:
    """As declared, but DATE as text, and TIMESTAMP in the form of the first value."""
    if type_.kind is Kind.DATE:
        return pa.string()
    if type_.kind is Kind.DECIMAL:
        # The reader does not see that 12345 has no room in DECIMAL(6, 2); the cast afterwards does.
        return pa.decimal128(38, type_.scale)
    if type_.kind is Kind.TIMESTAMP:
        return pa.timestamp("us") if isinstance(first, str) else pa.int64()
    return type_.arrow


def _as_declared(type_: Type, array: pa.Array) -> pa.Array:
    """Cast an array from the type it was read as to the declared one."""
    if type_.kind in (Kind.DATE, Kind.DECIMAL):
        return pc.cast(array, type_.arrow)
    if type_.kind is Kind.TIMESTAMP:
        if pa.types.is_timestamp(array.type):
            read = array.view(pa.int64())
            ms = np.floor_divide(read.fill_null(0).to_numpy(zero_copy_only=False), 1000)
            mask = ~read.is_valid().to_numpy(zero_copy_only=False) if read.null_count else None
            array = pa.array(ms, pa.int64(), mask=mask)
        return array.view(pa.timestamp("ms"))
    return array
