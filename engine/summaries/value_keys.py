"""Keys of values: what of a value a summary goes by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.kernels import strings as string_kernels
from engine.kernels import value_hashes
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.codes import CodeValues
from engine.model.string_table import StringTable, buffers_of
from engine.model.types import Kind

HashArray = npt.NDArray[np.uint64]
Float64Array = npt.NDArray[np.float64]


class ValueHashes:
    """Hashes of columns of values. What was worked out of tables of strings is kept; one writer."""

    def __init__(self) -> None:
        self._numbers = CodeValues()
        self._prefixes = CodeValues()

    def hashes(self, values: Column) -> HashArray:
        """uint64[n]: equal values of one type have one hash, and so have equal numbers of different types.

        Any hash where a value is NULL or NaN. O(rows + bytes of new strings).
        """
        out = np.empty(len(values), np.uint64)
        kind = values.type.kind
        if kind is Kind.STRING:
            numbers = self._of_strings(values, self._numbers, _string_numbers)
            value_hashes.integer_hashes(numbers, out)
        elif kind is Kind.DOUBLE:
            doubles = np.ascontiguousarray(values.values)
            value_hashes.double_hashes(doubles, doubles.view(np.int64), out)
        elif kind is Kind.DECIMAL and values.type.scale:
            self._decimal_hashes(values, out)
        elif kind is Kind.BOOLEAN:
            value_hashes.integer_hashes(values.values.astype(np.int64), out)
        else:
            value_hashes.integer_hashes(values.values, out)
        return out

    def positions(self, values: Column) -> Float64Array:
        """float64[n], in the order of the values, equal ones of different numeric types alike. Strings go by
        their first eight bytes. Any position where a value is NULL or NaN. O(rows + bytes of new strings).
        """
        kind = values.type.kind
        if kind is Kind.STRING:
            return self._of_strings(values, self._prefixes, _prefixes).astype(np.float64)
        if kind is Kind.DECIMAL:
            return values.values / float(10**values.type.scale)
        return values.values.astype(np.float64)

    @staticmethod
    def _of_strings(
        values: Column, known: CodeValues, compute: Callable[[pa.StringArray], Int64Array]
    ) -> Int64Array:
        """int64[n]: what is computed of each string, once for each code of a table."""
        strings = values.strings
        if isinstance(strings, StringTable):
            numbers = np.empty(len(values), np.int64)
            known.take(strings, values.values, numbers, compute)
            return numbers
        short = values.short()
        assert isinstance(short.dictionary, pa.StringArray)
        if not len(short.dictionary):
            return np.zeros(len(values), np.int64)
        of_rows: Int64Array = compute(short.dictionary)[short.values]
        return of_rows

    @staticmethod
    def _decimal_hashes(values: Column, out: HashArray) -> None:
        """Hash decimals as integers where they are whole, else as the doubles nearest to them."""
        power = 10**values.type.scale
        whole, rest = np.divmod(values.values, power)
        doubles = values.values / float(power)
        value_hashes.double_hashes(doubles, doubles.view(np.int64), out)
        as_integers = np.empty(len(values), np.uint64)
        value_hashes.integer_hashes(whole, as_integers)
        np.copyto(out, as_integers, where=rest == 0)


def _string_numbers(strings: pa.StringArray) -> Int64Array:
    numbers = np.empty(len(strings), np.int64)
    value_hashes.string_numbers(*buffers_of(strings), numbers)
    return numbers


def _prefixes(strings: pa.StringArray) -> Int64Array:
    """In their order, below 2^63 - 1: of the first eight bytes all but the last two bits."""
    found = np.empty(len(strings), np.uint64)
    string_kernels.prefixes(*buffers_of(strings), found)
    return (found >> np.uint64(2)).astype(np.int64)


def without_value(values: Column) -> BoolArray | None:
    """bool[n]: which rows are NULL or NaN; None: no row is."""
    missing = None if values.valid is None else ~values.valid
    if values.type.kind is Kind.DOUBLE:
        is_nan = np.isnan(values.values)
        if is_nan.any():
            missing = is_nan if missing is None else missing | is_nan
    return missing if missing is not None and missing.any() else None
