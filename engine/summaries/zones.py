"""Time zones: what a summary holds of a stretch of its stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.top_values import Top
from engine.model.batch import BoolArray, Int32Array, Int64Array

Cut = Literal["open", "change", "length", "granularity"]
CUTS: tuple[Cut, ...] = ("open", "change", "length", "granularity")
"""Why a zone of granularity 1 ended: not yet; its confidence fell below theta; it would be longer than
MAXLENGTH; a multiple of T1 came. Zones of other granularities are cut by multiples of their length."""


@dataclass(slots=True)
class SummaryZone:
    """One zone. Its times are those of its rows, whether they are retained or not."""

    # 1..m.
    granularity: int
    # The instant of its first row, ms.
    begin_ms: int
    # The instant of its last row, ms.
    last_ms: int
    # Ordinals of its rows, first <= ordinal < end; those that retention let go are not among them.
    first: int
    end: int
    # Where its cells are.
    slot: int
    # By which layout its rows are in buckets.
    layout: int
    # The values of its cells with the largest estimates; None: no lists are kept.
    top: Top | None = None
    # In the order of the zones of its granularity; see pyramid.py.
    number: int = 0
    # Whether its cells are in those of the pyramid.
    is_indexed: bool = False
    cut: Cut = "open"
    # When it ended; of several that were joined the least.
    confidence: float = 1.0


class Zones(NamedTuple):
    """The zones of a summary that have retained rows, oldest first, as columns of z.

    granularity: int32, 1..m. begin_ms, end_ms: int64, of the rows; the end is excluded, and zones may share
    a millisecond. first, end: int64, ordinals of the rows; together all that the summary knows of, without
    gaps. rows: int64, those that have a value. confidence: float64. cut: int32, place in CUTS, of the first
    of zones that were joined. layout: int32, 0: buckets by hash; 1: as the summary learned it. slot: int64,
    where the cells are.
    """

    granularity: Int32Array
    begin_ms: Int64Array
    end_ms: Int64Array
    first: Int64Array
    end: Int64Array
    rows: Int64Array
    confidence: npt.NDArray[np.float64]
    cut: Int32Array
    layout: Int32Array
    slot: Int64Array


class CandidateCells(NamedTuple):
    """Where values may be found: one for each value and each zone in whose cell there are rows.

    By key, then zone. key: int32, place among the keys asked for; zone: int32, place in ``zones``; bucket:
    int32, of the value in that zone; estimate: int32, 0..rows of the cell; pruned: bool, the index of the
    zones' granularity says that the value is not there, and the estimate is 0 (it may err).
    """

    key: Int32Array
    zone: Int32Array
    bucket: Int32Array
    estimate: Int32Array
    pruned: BoolArray
