"""Zone maps: what values a sealed segment can hold, so that a new query may pass it over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.domains.domain import Domain
from engine.model.batch import Column
from engine.model.types import Kind


@dataclass(frozen=True, slots=True)
class SegmentZone:
    """Domain keys at or below and at or above all of the segment's (they may lie further apart).

    null: whether some value is NULL.
    """

    low: int
    high: int
    null: bool


def zone_of(column: Column) -> SegmentZone | None:
    """The zone of a column with rows; None for strings, whose keys depend on the queries. O(rows)."""
    if column.type.kind is Kind.STRING:
        return None
    keys = np.empty(len(column), np.int64)
    Domain(column.type).keys(column, keys)
    null = column.valid is not None and not bool(column.valid.all())
    return SegmentZone(int(keys.min()), int(keys.max()), null)
