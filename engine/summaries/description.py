"""What a summary tells of itself, as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.model.attributes import Attribute, Bounds

if TYPE_CHECKING:
    from engine.summaries.summary import Summary


def attributes_of(summary: Summary) -> tuple[Attribute, ...]:
    """In the order in which they are shown. O(counters), for the error bound."""
    zones, settings = summary.zones, summary.definition.settings
    each = range(1, summary.definition.depth + 1)
    held = ", ".join(str(int((zones.granularity == granularity).sum())) for granularity in each)
    ended = summary.ended
    return (
        Attribute("rows", int(zones.rows.sum()), "rows with a value in its zones", unit="rows"),
        Attribute("zones", held, "zones of each granularity, the most recent first"),
        Attribute("zones_ended_change", ended["change"], "zones that ended because the stream changed"),
        Attribute("zones_ended_length", ended["length"], "zones that ended at their greatest length"),
        Attribute("zones_ended_granularity", ended["granularity"], "zones that ended at a multiple of T1"),
        Attribute("reach_ms", summary.definition.reach_ms, "how far it reaches behind NOW"),
        Attribute("nbytes", summary.nbytes, "memory of counters, indexes and lists", unit="bytes"),
        Attribute(
            "error_rows",
            float(np.max(summary.error_bounds(), initial=0.0)),
            "sqrt(F2 / b) of the worst cell: the standard deviation of an estimate is at most that",
            unit="rows",
        ),
        Attribute(
            "theta",
            settings.theta,
            "the confidence below which a zone ends",
            bounds=Bounds(0, 1),
            kind="number",
            changes_answers=True,
        ),
        Attribute(
            "zone_rows_min",
            settings.zone_rows_min,
            "rows of a zone before its confidence is looked at",
            bounds=Bounds(1),
            unit="rows",
            changes_answers=True,
        ),
    )
