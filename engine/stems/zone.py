"""Zone maps: what values a sealed segment can hold, so that a new query may pass it over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.model.batch import Column
from engine.model.types import Kind


@dataclass(frozen=True, slots=True)
class Zone:
    """ends: a column of two rows, a value at or below all of the segment's and one at or above (NaN on top).

    null: whether some value is NULL. The ends may be wider than the values.
    """

    ends: Column
    null: bool


def zone_of(column: Column) -> Zone | None:
    """The zone of a column with rows; None for strings, whose codes have no order. O(rows)."""
    if column.type.kind is Kind.STRING:
        return None
    values = column.values
    low, high = values.min(), values.max()
    if column.type.kind is Kind.DOUBLE and np.isnan(high):
        low = np.nan if np.isnan(values).all() else np.nanmin(values)
    null = column.valid is not None and not bool(column.valid.all())
    return Zone(Column(column.type, np.array([low, high], values.dtype)), null)
