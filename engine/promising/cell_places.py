"""Where the cells of entries are in a summary, and how many rows these hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.model.batch import Int32Array, Int64Array
from engine.promising.row_entries import RowEntries
from engine.summaries.summary import Summary


@dataclass(frozen=True, slots=True)
class CellPlaces:
    """Where entries lie among the zones of a summary now."""

    # int64[n]: places in the summary's zones.
    zone: Int64Array
    # int32[n]: 1..m.
    granularity: Int32Array
    # int32[n]: the place of the bucket among those of all layouts (:class:`NamedValues`).
    place: Int32Array
    # int64[n]: retained rows of the cell, and of the zone.
    cell_rows: Int64Array
    zone_rows: Int64Array

    @classmethod
    def of(cls, entries: RowEntries, summary: Summary) -> CellPlaces:
        """The places of entries; an entry whose zone is gone is taken to be in the oldest one. There is a
        zone.
        """
        zones = summary.zones
        zone = np.maximum(zones.first.searchsorted(entries.cursor, "right") - 1, 0)
        rows = summary.cell_rows(np.arange(len(zones.first)))
        return cls(
            zone,
            zones.granularity[zone],
            (zones.layout[zone] * rows.shape[1] + entries.bucket).astype(np.int32),
            rows[zone, entries.bucket].astype(np.int64),
            zones.rows[zone],
        )
