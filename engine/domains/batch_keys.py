"""What the grouped filters ask of a batch, worked out once each however many ask."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import numpy.typing as npt

from engine.domains.domain import Domain, StringDomain
from engine.kernels.intervals import Pieces
from engine.model.batch import Batch, BoolArray, Column, Int64Array


class BatchKeys:
    """Domain keys of a batch's columns (at most 65,536 rows), and what was derived from them."""

    def __init__(self, rows: Batch, domains: Mapping[int, Domain]) -> None:
        self.rows = rows
        self.n = len(rows)
        self.codes: dict[Hashable, Pieces] = {}
        """The piece of each row, by what the pieces were made with."""
        self._domains = domains
        self._keys: dict[int, Int64Array] = {}
        self._orders: dict[int, tuple[npt.NDArray[np.uint16], Int64Array]] = {}
        self._made_columns: dict[int, Column] = {}

    def keys(self, index: int) -> Int64Array:
        """int64[n]: of a column; what stands where a row is NULL means nothing."""
        keys = self._keys.get(index)
        if keys is None:
            keys = self._keys[index] = self._made(self.column(index), self._domains[index])
        return keys

    def column(self, index: int) -> Column:
        """A column of the batch, or its sample keys, which are made once."""
        if index < len(self.rows.columns):
            return self.rows.columns[index]
        column = self._made_columns.get(index)
        if column is None:
            column = self._made_columns[index] = self.rows.column(index)
        return column

    def _made(self, column: Column, domain: Domain) -> Int64Array:
        if column.values.dtype == np.int64 and type(domain) is Domain and not domain.double:
            return column.values
        keys = np.empty(self.n, np.int64)
        domain.keys(column, keys)
        return keys

    def valid(self, index: int) -> BoolArray | None:
        """Where a column is not NULL; None: everywhere."""
        return self.column(index).valid

    def order(self, index: int) -> tuple[npt.NDArray[np.uint16], Int64Array]:
        """(places, keys) in ascending order of a column's keys."""
        held = self._orders.get(index)
        if held is None:
            keys = self.keys(index)
            places = np.argsort(keys)
            held = self._orders[index] = (places.astype(np.uint16), keys[places])
        return held

    def part(self, places: Int64Array) -> PartKeys:
        """The keys of these rows alone."""
        return PartKeys(self, places)


class PartKeys(BatchKeys):
    """The keys of some rows of a batch: each column is taken when it is asked for."""

    def __init__(self, whole: BatchKeys, places: Int64Array) -> None:
        super().__init__(whole.rows, whole._domains)
        self.n = len(places)
        self._whole = whole
        self._places = places
        self._taken: dict[int, Column] = {}

    def keys(self, index: int) -> Int64Array:
        """Strings are labelled for the whole batch at once: that costs what its dictionary does."""
        keys = self._keys.get(index)
        if keys is None:
            domain = self._domains[index]
            if index in self._whole._keys or isinstance(domain, StringDomain):
                keys = self._whole.keys(index)[self._places]
            else:
                keys = self._made(self._column(index), domain)
            self._keys[index] = keys
        return keys

    def valid(self, index: int) -> BoolArray | None:
        return self._column(index).valid

    def _column(self, index: int) -> Column:
        column = self._taken.get(index)
        if column is None:
            column = self._taken[index] = self._whole.column(index).take(self._places)
        return column
