"""Rows as numbers: equal rows get equal codes, and ordered values ordered ones.

Equality is that of GROUP BY and DISTINCT: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0. Values order as
the language compares them: NaN above all numbers, strings by code point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.kernels import grouping
from engine.language.evaluation.vector import compact, from_column
from engine.model.batch import Column, Int64Array
from engine.model.types import Kind

WIDTH_MAX = 2**62


def encode(columns: Sequence[Column], n: int) -> tuple[Int64Array, Int64Array]:
    """Number the distinct rows of these columns in the order of their first appearance.

    Returns the code of each row, int64[n], and the first row of each code, int64[distinct], ascending.
    Without columns all rows are alike. O(n * columns), hashing.
    """
    codes, width = _combined(columns, n)
    if width > 1:
        codes, width = _dense(codes)
    firsts = np.empty(min(n, width), np.int64)
    grouping.first_rows(codes, firsts)
    return codes, firsts


def number(columns: Sequence[Column], n: int) -> tuple[Int64Array, int]:
    """Number the distinct rows in any order, perhaps with gaps: faster than ``encode``.

    Returns the code of each row, int64[n], and a number above all of them, in proportion to n at most.
    """
    codes, width = _combined(columns, n)
    return (codes, width) if width <= _sparse_max(n) else _dense(codes)


def _combined(columns: Sequence[Column], n: int) -> tuple[Int64Array, int]:
    """Codes >= 0 of rows, not dense, and a number above all of them."""
    codes, width = np.zeros(n, np.int64), 1
    for column in columns:
        each, size = _codes(column)
        if width * size > WIDTH_MAX:
            codes, width = _dense(codes)
        codes, width = (each, size) if width == 1 else (codes * size + each, width * size)
    return codes, width


def _sparse_max(n: int) -> int:
    """How many codes n rows may be spread over before they are made dense."""
    return 4 * n + 1024


def _codes(column: Column) -> tuple[Int64Array, int]:
    """Codes >= 0, not dense, and a number above all of them."""
    n, kind, valid = len(column), column.type.kind, column.valid
    if kind is Kind.NULL or not n:
        return np.zeros(n, np.int64), 1
    if kind is Kind.STRING:
        assert column.dictionary is not None
        codes, width = column.values.astype(np.int64), len(column.dictionary)
    elif kind is Kind.BOOLEAN:
        codes, width = column.values.astype(np.int64), 2
    else:
        values = _bits(column.values) if kind is Kind.DOUBLE else column.values.astype(np.int64, copy=False)
        low, high = int(values.min()), int(values.max())
        if high - low < _sparse_max(n):  # what stands at NULLs may stretch this, never break it
            codes, width = values - low, high - low + 1
        else:
            codes, width = _dense(values)
    if valid is not None:
        codes = np.where(valid, codes, width)
        width += 1
    return codes, width


def _bits(values: npt.NDArray[np.float64]) -> Int64Array:
    """The same int64 for doubles that are equal, with one NaN and one zero."""
    bits: Int64Array = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    return bits


def _dense(values: Int64Array) -> tuple[Int64Array, int]:
    """Codes 0, 1, 2, ... in the order of first appearance, and how many there are."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def order_keys(column: Column) -> Int64Array:
    """int64[n] that order as the values do; anything where NULL."""
    kind = column.type.kind
    if kind is Kind.STRING:
        short = compact(from_column(column))
        assert short.dictionary is not None
        ranks = np.empty(len(short.dictionary), np.int64)
        ranks[pc.sort_indices(short.dictionary).to_numpy()] = np.arange(len(ranks))
        return ranks[short.values] if len(ranks) else np.zeros(len(column), np.int64)
    if kind is Kind.DOUBLE:
        bits = _bits(column.values)
        return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return column.values.astype(np.int64, copy=False)
