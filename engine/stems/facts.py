"""What EXPLAIN tells of a predicate in the Query SteM: its cohort, its way in, what it shares and costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.stems.region_store import NULL_TOO, Intervals
from engine.stems.residual import ResidualPredicate
from engine.store.matches.cohorts import SELECTIVE

if TYPE_CHECKING:
    from engine.stems.query_stem import QueryStem

TEXTS_MAX = 64
"""Regions told of one predicate."""


def facts_of(stem: QueryStem, slot: int, residuals: Iterable[ResidualPredicate]) -> dict[str, Any]:
    """By name, as JSON values; the share of candidate rows as the sample suggests now."""
    regions = stem.store.of_slot(slot)
    sizes = np.array([len(regions)], np.int64)
    choice = stem.domains.sample.choose(sizes, stem.store.terms[[slot]].astype(np.int64), regions)
    place = stem.cohorts.of(slot)
    facts: dict[str, Any] = {
        "cohort": "selective" if place == SELECTIVE else "dense",
        "holders": int(stem.slots.holders[slot]),
        "terms": int(stem.store.terms[slot]),
        "regions": [_text(stem, regions, row) for row in range(min(TEXTS_MAX, len(regions)))],
        "estimated_share": float(f"{choice.share[0]:.3g}"),
        "residual_modules": [module.name for module in residuals],
    }
    if functions := stem.postponing.facts(slot):
        facts["functions"] = functions
    if place != SELECTIVE:
        facts["word"], facts["bit"] = place >> 6, place & 63
        facts["grouped_filters"] = stem.placement.dense.facts(place, stem.schema)
        return facts
    facts["reached_through"] = {}
    for index, points in sorted(stem.placement.selective.ways_in(slot)):
        path = stem.placement.selective.paths[index, points]
        name = f"{stem.schema.field(index).name}, {'points' if points else 'ranges'}"
        facts["reached_through"][name] = {
            "ways": path.ways,
            "predicates": path.members,
            "candidates_a_row": path.candidates_a_row(slot),
        }
    return facts


def _text(stem: QueryStem, regions: Intervals, row: int) -> str:
    index = int(regions.attribute[row])
    name = stem.schema.field(index).name
    null_too = bool(regions.flags[row] & NULL_TOO)
    if regions.low[row] > regions.last[row]:
        return f"{name} IS NULL" if null_too else f"{name}: nothing"
    text = stem.domains.by_index[index].text((int(regions.low[row]), int(regions.last[row])))
    return f"{name} {text}{' or NULL' if null_too else ''}"
