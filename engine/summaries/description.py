"""What a summary tells of itself as an entity; theta and zone_rows_min change by a journalled step."""

from __future__ import annotations

import numpy as np

from engine.model.attributes import Attribute, NumberRange
from engine.summaries.summary import Summary

ROWS_MIN_MAX = 1_000_000
"""The upper bound of zone_rows_min that the entity tells."""


def attributes_of(summary: Summary) -> tuple[Attribute, ...]:
    """The attributes of one summary. O(zones)."""
    definition, zones = summary.definition, summary.zones
    settings = definition.settings
    confidence = float(zones.confidence[-1]) if len(zones.confidence) else None
    return (
        Attribute("stream", definition.stream, "what it summarises"),
        Attribute("attribute", definition.attribute, "the column that its values are of"),
        Attribute("kind", settings.kind, "how it counts values"),
        Attribute("granularity_ms", definition.granularity_ms, "the length of the finest granularity"),
        Attribute("rate", definition.rate, "how many times as long each granularity is as the one before"),
        Attribute("depth", definition.depth, "granularities"),
        Attribute("reach_ms", definition.reach_ms, "how far behind NOW it reaches"),
        Attribute("zones", len(zones.rows), "zones that have rows"),
        Attribute("rows", int(np.sum(zones.rows)), "rows in them that have a value", unit="rows"),
        Attribute("confidence", confidence, "of the last zone that ended, or of the one that is open"),
        Attribute(
            "theta",
            settings.theta,
            "the confidence below which a zone ends",
            bounds=NumberRange(0, 1),
            kind="number",
            changes_answers=True,
        ),
        Attribute(
            "zone_rows_min",
            settings.zone_rows_min,
            "rows of a zone before its confidence is looked at",
            bounds=NumberRange(1, ROWS_MIN_MAX),
            unit="rows",
            changes_answers=True,
        ),
    )
