"""Rows as numbers: equal rows get equal codes, and ordered values ordered ones.

Equality is that of GROUP BY and DISTINCT: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0. Values order as
the language compares them: NaN above all numbers, strings by code point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.kernels import grouping
from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import from_column
from engine.language.instants import DAY_MS
from engine.model.batch import Column, Int64Array, concatenate_columns
from engine.model.types import BIGINT, DOUBLE, TIMESTAMP, Kind, Type

WIDTH_MAX = 2**62


def encode(columns: Sequence[Column], n: int) -> tuple[Int64Array, Int64Array]:
    """Number the distinct rows of these columns in the order of their first appearance.

    Returns the code of each row, int64[n], and the first row of each code, int64[distinct], ascending.
    Without columns all rows are alike. O(n * columns), hashing where the values lie far apart.
    """
    codes, width = _combined(columns, n)
    if 1 < width <= _sparse_max(n):
        dense, firsts = np.empty(n, np.int64), np.empty(min(n, width), np.int64)
        return dense, firsts[: grouping.relabel(codes, width, dense, firsts)]
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
    """int64[n], equal where the doubles are equal; there is one NaN and one zero."""
    bits: Int64Array = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    return bits


def _dense(values: Int64Array) -> tuple[Int64Array, int]:
    """Codes 0, 1, 2, ... in the order of first appearance, and how many there are."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def with_one_zero(column: Column) -> Column:
    """The column with 0.0 in place of -0.0: two zeros are equal, so their order tells nothing."""
    if column.type.kind is not Kind.DOUBLE:
        return column
    return Column(DOUBLE, column.values + 0.0, column.valid)


def order_keys(column: Column) -> Int64Array:
    """int64[n] that order as the values do; anything where NULL."""
    kind = column.type.kind
    if kind is Kind.STRING:
        short = column.short()
        assert short.dictionary is not None
        ranks = np.empty(len(short.dictionary), np.int64)
        ranks[pc.sort_indices(short.dictionary).to_numpy()] = np.arange(len(ranks))
        return ranks[short.values] if len(ranks) else np.zeros(len(column), np.int64)
    if kind is Kind.DOUBLE:
        bits = _bits(column.values)
        return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return column.values.astype(np.int64, copy=False)


def values_in_order(type_: Type, keys: Int64Array) -> Column:
    """The values, no strings or arrays, whose order keys these are. keys: int64[n]."""
    if type_.kind is Kind.DOUBLE:
        return Column(type_, (keys ^ ((keys >> 63) & np.int64(2**63 - 1))).view(np.float64))
    return Column(type_, keys.astype(type_.dtype))


# --- columns of two relations ---------------------------------------------------------------------


def pair_codes(
    left: Sequence[Column], right: Sequence[Column], n: int, m: int
) -> tuple[Int64Array, Int64Array, int]:
    """Codes of the rows of two relations, the same where they equal in all columns; -1: a NULL among them.

    Returns int64[n], int64[m], and a number above all codes, in proportion to n + m at most.
    """
    columns = [column for pair in zip(left, right, strict=True) for column in together(*pair)]
    codes, width = number(columns, n + m)
    for start, side in ((0, left), (n, right)):
        for column in side:
            if column.type.kind is Kind.NULL:
                codes[start : start + len(column)] = -1
            elif column.valid is not None:
                codes[start : start + len(column)][~column.valid] = -1
    return codes[:n], codes[n:], width


def alike(
    one: Sequence[Column], other: Sequence[Column], n: int, m: int
) -> tuple[Int64Array, Int64Array, int]:
    """Codes of the rows of two relations whose columns have the same types, the same where GROUP BY has them
    equal: NULL equals NULL.

    Returns int64[n], int64[m], and a number above all codes, in proportion to n + m at most.
    """
    columns = [concatenate_columns(pair[0].type, pair) for pair in zip(one, other, strict=True)]
    codes, width = number(columns, n + m)
    return codes[:n], codes[n:], width


def together(one: Column, other: Column) -> Iterator[Column]:
    """Columns in which values of two of comparable types equal exactly where they do themselves.

    One column after the other, as if there were no NULLs.
    """
    kinds = {one.type.kind, other.type.kind}
    if Kind.DOUBLE in kinds:
        pieces = [as_double(from_column(column)) for column in (one, other)]
        yield Column(DOUBLE, np.concatenate(pieces))
    elif Kind.DECIMAL in kinds and one.type.scale != other.type.scale:
        scale = max(one.type.scale, other.type.scale)
        parts = [np.divmod(c.values.astype(np.int64), np.int64(10**c.type.scale)) for c in (one, other)]
        scales = [10 ** (scale - column.type.scale) for column in (one, other)]
        yield Column(BIGINT, np.concatenate([whole for whole, _ in parts]))
        yield Column(
            BIGINT, np.concatenate([rest * factor for (_, rest), factor in zip(parts, scales, strict=True)])
        )
    elif kinds == {Kind.DATE, Kind.TIMESTAMP}:
        yield Column(TIMESTAMP, np.concatenate([_instants(one), _instants(other)]))
    elif one.strings is not None and one.strings is other.strings:
        yield Column(one.type, np.concatenate([one.values, other.values]), None, one.strings)
    else:
        yield _one_after_another([one, other])


def ordered(columns: Sequence[Column]) -> list[Int64Array] | None:
    """int64 for each value of columns of comparable types, ordered as the values are across all of them;
    anything where NULL. None: no int64 orders them.
    """
    kinds = {column.type.kind for column in columns}
    if Kind.DOUBLE in kinds:
        whole = Column(DOUBLE, np.concatenate([as_double(from_column(column)) for column in columns]))
    elif kinds == {Kind.DATE, Kind.TIMESTAMP}:
        whole = Column(TIMESTAMP, np.concatenate([_instants(column) for column in columns]))
    elif Kind.NULL in kinds or len({column.type.scale for column in columns}) > 1:
        return None
    else:
        whole = _one_after_another(columns)
    return np.split(order_keys(whole), np.cumsum([len(column) for column in columns])[:-1])


def _instants(column: Column) -> Int64Array:
    values = column.values.astype(np.int64, copy=False)
    return values * DAY_MS if column.type.kind is Kind.DATE else values


def _one_after_another(columns: Sequence[Column]) -> Column:
    """Without NULLs; of strings those that occur."""
    plain = []
    for column in columns:
        short = column.short() if column.type.kind is Kind.STRING else column
        plain.append(replace(short, valid=None))
    return concatenate_columns(columns[0].type, plain)
