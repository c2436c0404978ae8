"""What is known of a summary at work: what DESCRIBE SUMMARY and SHOW SUMMARIES tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.model.batch import BoolArray
from engine.summaries.summary import Summary
from engine.summaries.zones import CUTS

ZONES_MAX = 1_000
"""Zones that are listed, the latest."""


def brief_facts(summary: Summary) -> dict[str, Any]:
    """Rows that it knows of, zones and bytes. O(zones)."""
    zones = summary.zones
    return {"rows": int(zones.rows.sum()), "zones": len(zones.rows), "bytes": summary.nbytes}


def whole_facts(summary: Summary) -> dict[str, Any]:
    """Returns :func:`brief_facts` with what is known of each granularity and each zone, the finest and the
    latest first.

    Instants are in ms since 1970, an end is excluded. ``cut``: why a zone ended. ``error_rows``: sqrt(F2 / b)
    of the worst cell; an estimate is rarely off by more. O(counters).
    """
    zones, errors = summary.zones, summary.error_bounds()
    without_value = summary.cell_rows(np.arange(len(zones.rows)))[:, -1]
    each = range(1, summary.definition.depth + 1)
    listed = [
        {
            "granularity": int(zones.granularity[place]),
            "from_ms": int(zones.begin_ms[place]),
            "until_ms": int(zones.end_ms[place]),
            "rows": int(zones.rows[place]),
            "cut": CUTS[int(zones.cut[place])],
            "confidence": float(zones.confidence[place]),
            "error_rows": float(errors[place]),
        }
        for place in range(len(zones.rows) - 1, max(-1, len(zones.rows) - 1 - ZONES_MAX), -1)
    ]
    return brief_facts(summary) | {
        "rows_without_value": int(without_value.sum()),
        "error_rows": float(errors.max(initial=0.0)),
        "ended": {cut: int(count) for cut, count in summary.ended.items()},
        "granularities": [_granularity(summary, number, zones.granularity == number) for number in each],
        "listed": listed,
    }


def _granularity(summary: Summary, number: int, among: BoolArray) -> dict[str, Any]:
    """What its zones have together. among: bool, which of all zones they are."""
    zones = summary.zones
    there = bool(among.any())
    cuts = np.bincount(zones.cut[among], minlength=len(CUTS))
    return {
        "granularity": number,
        "length_ms": summary.definition.lengths_ms[number - 1],
        "zones": int(among.sum()),
        "rows": int(zones.rows[among].sum()),
        "from_ms": int(zones.begin_ms[among].min()) if there else None,
        "until_ms": int(zones.end_ms[among].max()) if there else None,
        "cuts": {cut: int(count) for cut, count in zip(CUTS, cuts, strict=True)},
        "confidence_min": float(zones.confidence[among].min()) if there else None,
        "error_rows": float(summary.error_bounds()[among].max()) if there else None,
    }
