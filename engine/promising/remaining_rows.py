"""Rows that are left to visit, as the summaries estimate them for one query, by strata of the summarised
attribute: what aggregates are completed by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.model.batch import Column, Int64Array
from engine.operators.keys import pair_codes
from engine.summaries.layouts import Layout
from engine.summaries.value_keys import ValueHashes, without_value


@dataclass(frozen=True, slots=True)
class RemainingRows:
    """How many rows that are left a query is estimated to take, by stratum; immutable."""

    # The place of the attribute among the columns of the stream.
    column: int
    # The values of the strata, each once, behind which is one of rows without a value; None: they are buckets
    # of the layout, then one of rows without a value, and one of rows whose bucket was of another layout.
    values: Column | None
    layout: Layout
    # float64[strata].
    rows: npt.NDArray[np.float64]

    @property
    def total(self) -> float:
        """The estimated rows of all strata together."""
        return float(self.rows.sum())

    def strata_of(self, values: Column) -> Int64Array:
        """int64[n]: the strata of values of the attribute. Of rows that the query takes each has one."""
        missing = without_value(values)
        if self.values is not None:
            left, right, width = pair_codes([values], [self.values], len(values), len(self.values))
            place = np.zeros(width + 1, np.int64)
            place[right] = np.arange(len(right))
            strata, without = place[left], len(self.values)
        else:
            hashes = ValueHashes()
            positions = np.empty(0) if self.layout.cuts is None else hashes.positions(values)
            strata = self.layout.bucket_of(hashes.hashes(values), positions).astype(np.int64)
            without = self.layout.buckets
        if missing is not None:
            strata[missing] = without
        return strata
