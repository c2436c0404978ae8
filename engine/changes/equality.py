"""Rows of answers as numbers, the same for rows that are told by nothing.

NULL equals NULL and NaN equals NaN; 0.0 and -0.0 are two values here, since a client sees which one it holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.types import BIGINT, Kind
from engine.operators.keys import number


def codes_of(columns: Sequence[Column], n: int) -> Int64Array:
    """int64[n]; O(n * columns), hashing."""
    codes, _ = number([_comparable(column) for column in columns], n)
    return codes


def codes_of_table(table: pa.Table) -> Int64Array:
    """Codes the rows of an Arrow table as :func:`codes_of` codes columns: int64[n], n rows. O(n * columns),
    hashing.
    """
    columns = [Column(BIGINT, _arrow_codes(column)) for column in table.columns]
    codes, _ = number(columns, table.num_rows)
    return codes


def _comparable(column: Column) -> Column:
    if column.type.kind is Kind.DOUBLE:
        return Column(BIGINT, double_bits(column.values), column.valid)
    return column


def double_bits(values: npt.NDArray[np.float64]) -> Int64Array:
    """int64[n]: doubles by their bits, with one NaN."""
    return np.where(np.isnan(values), np.nan, values).view(np.int64)


def equal_values(column: Column, some: Int64Array | slice, others: Int32Array | Int64Array) -> BoolArray:
    """Compares the values at some places with those at others: bool[n], true where they are equal. No two
    codes mean one string.
    """
    one, other = column.values[some], column.values[others]
    if column.type.kind is Kind.DOUBLE:
        one, other = double_bits(one), double_bits(other)
    same: BoolArray = one == other
    if column.valid is not None:
        valid, others_valid = column.valid[some], column.valid[others]
        same = np.where(valid & others_valid, same, valid == others_valid)
    return same


def _arrow_codes(column: pa.ChunkedArray) -> Int64Array:
    """int64[n], equal for equal values."""
    n, type_ = len(column), column.type
    if pa.types.is_null(type_):
        return np.zeros(n, np.int64)
    if isinstance(type_, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], type_.storage_type)
    if pa.types.is_nested(type_):
        known: dict[str, int] = {}
        return np.array([known.setdefault(repr(value), len(known)) for value in column.to_pylist()], np.int64)
    if pa.types.is_floating(type_):
        # by its bits: a hash of doubles may take -0.0 for 0.0
        values = pc.fill_null(column, 0.0).to_numpy()
        bits = double_bits(values)
        column = pa.chunked_array([pa.array(bits, mask=column.is_null().to_numpy(zero_copy_only=False))])
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: Int64Array = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
