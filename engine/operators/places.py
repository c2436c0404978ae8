"""Places of stored rows: which rows of which segment, and their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.model.batch import Int64Array
from engine.stems.segment import SegmentView

Places = Sequence[tuple[SegmentView, Int64Array]]
"""Per part the places of rows, ascending; parts without rows are left out."""


def timestamps_at(places: Places) -> Int64Array:
    """int64[n], ascending: the instant of each row."""
    found = [part.timestamp[where] for part, where in places]
    return np.concatenate(found) if found else np.empty(0, np.int64)
