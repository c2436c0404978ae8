"""What the grouped filters ask of a batch, worked out once each however many ask."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import numpy.typing as npt

from engine.kernels.intervals import Pieces
from engine.model.batch import Batch, BoolArray, Int64Array
from engine.stems.domain import Domain


class BatchKeys:
    """Domain keys of a batch's columns (at most 65,536 rows), and what was derived from them."""

    def __init__(self, rows: Batch, domains: Mapping[int, Domain]) -> None:
        self.rows = rows
        self.n = len(rows)
        self.codes: dict[Hashable, Pieces] = {}
        """By what made them: the piece of each row."""
        self._domains = domains
        self._keys: dict[int, Int64Array] = {}
        self._orders: dict[int, tuple[npt.NDArray[np.uint16], Int64Array]] = {}

    def keys(self, index: int) -> Int64Array:
        """int64[n]: of a column; what stands where a row is NULL means nothing."""
        keys = self._keys.get(index)
        if keys is None:
            column = self.rows.columns[index]
            keys = column.values
            if (
                keys.dtype != np.int64
                or type(self._domains[index]) is not Domain
                or self._domains[index].double
            ):
                keys = np.empty(self.n, np.int64)
                self._domains[index].keys(column, keys)
            self._keys[index] = keys
        return keys

    def valid(self, index: int) -> BoolArray | None:
        """Where a column is not NULL; None: everywhere."""
        return self.rows.columns[index].valid

    def order(self, index: int) -> tuple[npt.NDArray[np.uint16], Int64Array]:
        """(places, keys) in ascending order of a column's keys."""
        held = self._orders.get(index)
        if held is None:
            keys = self.keys(index)
            places = np.argsort(keys)
            held = self._orders[index] = (places.astype(np.uint16), keys[places])
        return held
