"""Tags of answers of which something is left to be found, or never will be."""

from __future__ import annotations

from engine.language.query import Query
from engine.model.approximation import Approximation, Expected, Unfinished
from engine.promising.group import GroupKey, PromisingGroup, expected_precision
from engine.results.estimated_aggregates import unscaled_calls


def where_of(key: GroupKey) -> str:
    """The sources that are looked through."""
    return " JOIN ".join(key.sources)


def tag_of(group: PromisingGroup, query_id: str, found: int) -> Approximation:
    """Of a query that lacks something. found: how much was found for it."""
    counts = group.counts
    share = expected_precision(found, group.estimate_left(query_id))
    return Approximation(
        "preference",
        where_of(group.key),
        "declared",
        round(100.0 * share, 3),
        "percent",
        100.0,
        expected=Expected(0.0, 1.0 - share),
        unscaled=unscaled_calls(group.members[query_id].query),
        unfinished=Unfinished(counts.entries_left, counts.cut + counts.lapsed, counts.short),
    )


def tag_without_summary(key: GroupKey, query: Query) -> Approximation:
    """Of a query whose summary is absent: nothing is known of what it lacks."""
    return Approximation(
        "preference",
        where_of(key),
        "declared",
        0.0,
        "percent",
        100.0,
        unscaled=unscaled_calls(query),
        unfinished=Unfinished(0, 0, 0),
    )


def tag_on_demand(key: GroupKey, units: int) -> Approximation:
    """Of a query for which nothing is kept, before it is asked: its answers spend so many units at most."""
    return Approximation("preference", where_of(key), "declared", float(units), "units")
