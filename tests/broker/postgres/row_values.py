"""Values of each type of a column, and when one that was read is the one that was written."""

from __future__ import annotations

import struct
from datetime import UTC
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from broker.postgres import types

VALUES: dict[int, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    types.BOOL: (pa.bool_(), st.booleans()),
    types.INT4: (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    types.INT8: (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    types.FLOAT8: (pa.float64(), st.floats()),
    types.TEXT: (pa.string(), st.text()),
    types.BYTEA: (pa.binary(), st.binary(max_size=20)),
    types.UUID: (pa.string(), st.uuids().map(str)),
    types.DATE: (pa.date32(), st.dates()),
    types.TIMESTAMPTZ: (
        pa.timestamp("ms"),
        st.datetimes().map(lambda one: one.replace(microsecond=one.microsecond // 1_000 * 1_000)),
    ),
    types.NUMERIC: (
        pa.decimal128(18, 4),
        st.integers(-(10**18) + 1, 10**18 - 1).map(lambda one: Decimal(one).scaleb(-4)),
    ),
}


def same(read: Any, written: Any, oid: int) -> bool:
    if written is None or read is None:
        return read is written
    if oid == types.FLOAT8:
        return struct.pack("!d", read) == struct.pack("!d", written) or read != read
    if oid == types.UUID:
        return str(read) == written
    if oid == types.TIMESTAMPTZ:
        return bool(read == written.replace(tzinfo=UTC))
    return bool(read == written)
