"""Places of stored rows: which rows of which segment, and their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.model.batch import Int64Array
from engine.operators.relation import Moments
from engine.stems.segment import SegmentView

Places = Sequence[tuple[SegmentView, Int64Array]]
"""Per part the places of rows, ascending; parts without rows are left out."""


def timestamps_at(places: Places) -> Int64Array:
    """int64[n], ascending: the instant of each row."""
    found = [part.timestamp[where] for part, where in places]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def first_of(places: Places, rows: int) -> Places:
    """The first rows alone."""
    found = []
    for part, where in places:
        if rows <= 0:
            break
        found.append((part, where[:rows]))
        rows -= len(where)
    return found


def moments_at(places: Places) -> Moments:
    """Where the rows stand in the order of the stream."""
    if not places:
        nowhere = np.empty(0, np.int64)
        return Moments(nowhere, nowhere, nowhere)
    origins = [part.origins.of(int(where[0]), int(where[-1]) + 1) for part, where in places]
    taken = [where - where[0] for _, where in places]
    partitions, offsets = (
        np.concatenate([each[rows] for each, rows in zip(arrays, taken, strict=True)]).astype(np.int64)
        for arrays in zip(*origins, strict=True)
    )
    return Moments(timestamps_at(places), partitions, offsets)
