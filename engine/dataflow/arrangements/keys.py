"""Values of keys under numbers, the same for rows whose values nothing tells apart: NULL equals NULL, NaN
equals NaN, and 0.0 is another value than -0.0.

A key is a tuple of words: one a column, the value itself, its bits, or the code of a string or an array; and
one of bits that say which columns are NULL. A number is given back when nobody has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.changes.equality import double_bits, plain
from engine.dataflow.arrangements.word_table import WordTable
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.string_table import StringTable
from engine.model.types import Kind, Type

VALUES_MIN = 65_536
"""Fewer strings or arrays than these are not looked through for dead ones."""


class Keys:
    """Of one list of types. One writer."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = tuple(types)
        self._table = WordTable(len(types) + 1)
        self._coded: list[StringTable | _Arrays | None] = [_coded(type_) for type_ in types]
        self._users: Int64Array = np.zeros(self._table.capacity, np.int64)

    def __len__(self) -> int:
        return len(self._table)

    def number(self, columns: Sequence[Column], n: int) -> Int32Array:
        """int32[n]: the numbers of n rows. Whoever asks takes all of them (:meth:`take`)."""
        ids = self._table.number(self._words(columns, n))
        self._make_room()
        return ids

    def take(self, ids: Int32Array) -> None:
        """A user more for each of these, as often as it stands there."""
        np.add.at(self._users, ids, 1)

    def give_back(self, ids: Int32Array) -> None:
        """A user less for each of these; numbers without users go."""
        np.subtract.at(self._users, ids, 1)
        released = np.unique(ids[self._users[ids] == 0])
        self._table.release(released)
        self._compact()

    def columns(self, ids: Int32Array) -> list[Column]:
        """The values of these numbers."""
        words = self._table.words
        null, found = words[ids, len(self._types)], []
        some_null = bool(null.any())
        for place, (type_, coded) in enumerate(zip(self._types, self._coded, strict=True)):
            valid = (null >> place) & 1 == 0 if some_null else None
            if valid is not None and valid.all():
                valid = None
            values: npt.NDArray[Any] = words[ids, place]
            values = values.view(np.float64) if type_.kind is Kind.DOUBLE else values.astype(type_.dtype)
            strings = coded.array() if isinstance(coded, _Arrays) else coded
            found.append(Column(type_, values, valid, strings))
        return found

    def _words(self, columns: Sequence[Column], n: int) -> Int64Array:
        words = np.zeros((n, len(self._types) + 1), np.int64)
        null = words[:, len(self._types)]
        for place, (column, coded) in enumerate(zip(columns, self._coded, strict=True)):
            if column.type.kind is Kind.NULL:
                null |= 1 << place
                continue
            if isinstance(coded, StringTable):
                words[:, place] = column.codes_in(coded)
            elif coded is not None:
                words[:, place] = coded.number(column)
            elif column.type.kind is Kind.DOUBLE:
                words[:, place] = double_bits(column.values)
            else:
                words[:, place] = column.values
            if column.valid is not None:
                words[~column.valid, place] = 0
                null |= (~column.valid).astype(np.int64) << place
        return words

    def _make_room(self) -> None:
        if len(self._users) < self._table.capacity:
            users = np.zeros(self._table.capacity, np.int64)
            users[: len(self._users)] = self._users
            self._users = users

    def _compact(self) -> None:
        """Let go of strings and arrays that no key has."""
        for place, coded in enumerate(self._coded):
            if coded is None or len(coded) <= VALUES_MIN + 2 * len(self._table):
                continue
            ids = self._table.used()
            used, codes = np.unique(self._table.words[ids, place], return_inverse=True)
            self._coded[place] = coded.only(used)
            self._table.words[ids, place] = codes
            self._table.renew()

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._users.nbytes + sum(one.nbytes for one in self._coded if one)

    def _check(self) -> None:
        self._table._check()
        assert bool((self._users[self._table.used()] > 0).all())


class _Arrays:
    """Codes of arrays: a value that occurs is looked at once a batch."""

    def __init__(self, type_: Type) -> None:
        self._type = type_
        self._codes: dict[Any, int] = {}
        self._values: list[Any] = []
        self._array: pa.ListArray | None = None

    def __len__(self) -> int:
        return len(self._values)

    def number(self, column: Column) -> Int64Array:
        """int64[n], any code where NULL."""
        used, places = np.unique(column.values, return_inverse=True)
        codes = np.zeros(len(used), np.int64)
        assert column.dictionary is not None
        for place, code in enumerate(used.tolist() if len(column.dictionary) else ()):
            codes[place] = self._code(column.dictionary[code].as_py())
        found: Int64Array = codes[places]
        return found

    def _code(self, value: list[Any]) -> int:
        key = plain(value)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self._values)
            self._values.append(value)
            self._array = None
        return code

    def array(self) -> pa.ListArray:
        """All values by code."""
        if self._array is None:
            self._array = pa.array(self._values, self._type.arrow)
        return self._array

    def only(self, codes: Int64Array) -> _Arrays:
        """Those with these codes, in this order."""
        fewer = _Arrays(self._type)
        for code in codes.tolist():
            fewer._code(self._values[code])
        return fewer

    @property
    def nbytes(self) -> int:
        return 0 if self._array is None else self._array.nbytes


def _coded(type_: Type) -> StringTable | _Arrays | None:
    if type_.kind is Kind.STRING:
        return StringTable()
    return _Arrays(type_) if type_.kind is Kind.ARRAY else None
