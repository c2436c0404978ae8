"""Values of columns as tuples of whole numbers, and back.

A tuple has a word for each column, the value itself, its bits, or the code of a string or an array; and
words of bits that say which columns are NULL. Values that nothing tells apart have the same word: NULL equals
NULL, NaN equals NaN, and 0.0 is another value than -0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.changes.equality import double_bits
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.string_table import StringTable
from engine.model.types import Kind, Type

NULL_BITS = 63
"""So many columns a word of bits."""
VALUES_MIN = 65_536
"""Fewer strings or arrays than these are not looked through for dead ones."""


class Words:
    """Encodes rows of one list of types as words. One writer."""

    def __init__(
        self, types: Sequence[Type], capacities: Capacities = USUAL, *, nullable: bool = True
    ) -> None:
        """nullable: False: no value is NULL, and tuples have no word that says which are."""
        self.types = tuple(types)
        self._nullable = nullable or not types
        self._values_min = capacities.first(VALUES_MIN)
        self._coded: list[StringTable | None] = [_coded(type_, capacities) for type_ in types]

    @property
    def width(self) -> int:
        """How many words a tuple has."""
        return self.null_word(len(self.types)) + 1 if self._nullable else len(self.types)

    def null_word(self, place: int) -> int:
        """The word whose bits say whether the column at a place is NULL."""
        return len(self.types) + place // NULL_BITS

    def encode(self, columns: Sequence[Column], n: int) -> Int64Array:
        """int64[n, width], C order, of n rows."""
        words = np.zeros((n, self.width), np.int64)
        for place, (column, coded) in enumerate(zip(columns, self._coded, strict=True)):
            if column.type.kind is Kind.NULL:
                self._mark(words, place, np.ones(n, np.bool_))
                continue
            if coded is not None:
                words[:, place] = column.codes_in(coded)
            elif column.type.kind is Kind.DOUBLE:
                words[:, place] = double_bits(column.values)
            else:
                words[:, place] = column.values
            if column.valid is not None:
                words[~column.valid, place] = 0
                self._mark(words, place, ~column.valid)
        return words

    def _mark(self, words: Int64Array, place: int, null: BoolArray) -> None:
        """The values of a column are NULL where it says so."""
        if self._nullable:
            words[:, self.null_word(place)] |= null.astype(np.int64) << place % NULL_BITS
        else:
            assert not null.any()

    def column(self, place: int, tuples: Int64Array) -> Column:
        """A column of tuples, int64[n, width]."""
        nulls = tuples[:, self.null_word(place)] if self._nullable else np.zeros(len(tuples), np.int64)
        return self.decode(place, np.ascontiguousarray(tuples[:, place]), nulls)

    def decode(self, place: int, words: Int64Array, nulls: Int64Array) -> Column:
        """A column. words: int64[n], its own; nulls: int64[n], its :meth:`null_word`."""
        type_, coded = self.types[place], self._coded[place]
        valid = None
        if nulls.any():
            valid = (nulls >> place % NULL_BITS) & 1 == 0
            if valid.all():
                valid = None
        values: npt.NDArray[Any] = words
        values = values.view(np.float64) if type_.kind is Kind.DOUBLE else values.astype(type_.dtype)
        return Column(type_, values, valid, coded)

    def as_they_stand(self) -> Words:
        """What reads tuples of now, whatever :meth:`shrink` does later: for columns that are made when they
        are asked for.
        """
        found = copy(self)
        found._coded = list(self._coded)
        return found

    def is_wasteful(self, used: int) -> bool:
        """Whether there are many more strings or arrays than tuples in use."""
        return any(coded is not None and len(coded) > self._values_min + 2 * used for coded in self._coded)

    def shrink(self, tuples: Int64Array, used: Int32Array) -> None:
        """Let go of strings and arrays that no tuple has; those that stay get other codes. tuples: int64[n,
        width], written; used: which of them are in use.
        """
        for place, coded in enumerate(self._coded):
            if coded is not None and len(coded) > self._values_min + 2 * len(used):
                held, codes = np.unique(tuples[used, place], return_inverse=True)
                self._coded[place] = coded.only(held)
                tuples[used, place] = codes

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self._coded if one)


def _coded(type_: Type, capacities: Capacities) -> StringTable | None:
    return StringTable(capacities) if type_.kind is Kind.STRING else None
