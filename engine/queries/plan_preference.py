"""EXPLAIN of a preference: the promising set that a query's rows come from, and what it is made of.

Counts are those of the set since it began, which all its queries share; ``found``, ``estimated_left`` and
``precision`` are the query's own.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from engine.language.preference import Preference, PreferenceOrder, Priority, PriorityForm
from engine.language.render import render_priority
from engine.model.source import SourceName
from engine.model.summary import SummaryName
from engine.promising.group import GroupKind, expected_precision
from engine.queries.promising import Numbered
from engine.sources.source import Source
from engine.summaries.summary import Summary

UNFAITHFUL = 0.15
"""Where less of an answer is found than this, rows dropped at random show its proportions as well or better
(benchmark ``promising-fig13``: at 3 and 8 % of the output they do, at 13 % and more they do not).
"""


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A summary that a priority takes its estimates from, as it stands."""

    name: SummaryName
    source: str
    attribute: str
    kind: str
    # How far behind NOW it reaches, ms.
    reach_ms: int
    # Zones of each granularity, the most recent first.
    zones: tuple[int, ...]
    # Rows in them that have a value.
    rows: int
    # Standard deviation of one row of the sketch, sqrt(F2 / b), in the worst cell, in rows.
    error_rows: float
    nbytes: int


@dataclass(frozen=True, slots=True)
class PlanPriority:
    """Which rows of a source come first."""

    source: str
    summary: SummaryName
    expression: str


@dataclass(frozen=True, slots=True)
class PlanPreference:
    """How a query with a preference finds its rows."""

    # The promising set, as an entity; None: the query is not registered, or paused, and has none.
    group: str | None
    kind: GroupKind
    order: PreferenceOrder
    priorities: tuple[PlanPriority, ...]
    # In (0, 1]: of the priority, from one granularity to the next older one.
    fade: float
    form: PriorityForm
    # None: as far as the summaries reach.
    window_ms: int | None
    summaries: tuple[PlanSummary, ...]
    # Queries that share the set.
    members: int
    # Counts of the set (:class:`engine.promising.group.GroupCounts`).
    counts: Mapping[str, float]
    found: int
    # How many of the unvisited rows of its windows will be found, as the summaries estimate.
    estimated_left: float
    # Found of found and estimated.
    precision: float
    # Whether the answer is the exact one.
    is_whole: bool
    # What is left out, and what else would show it.
    notes: tuple[str, ...]
    # Columns of an aggregate over one stream that are no estimates of those over all rows.
    unscaled: tuple[str, ...] = ()
    # Where it was analyzed and has one row, the columns that are completed by estimates, with what the
    # visited rows alone give.
    visited: Mapping[str, float | None] = field(default_factory=dict)


def plan_preference(
    query_id: str | None,
    preference: Preference,
    kind: GroupKind,
    numbered: Numbered | None,
    sources: Mapping[SourceName, Source],
    unscaled: tuple[str, ...],
) -> PlanPreference:
    """Explains how a query with a preference finds its rows. preference: the query's, with its options
    applied. numbered: its group; None: it is in none. sources: those of its scans. unscaled: columns of its
    aggregates that are no estimates.
    """
    group = None if numbered is None else numbered.group
    found, left, is_whole, counts = 0, 0.0, False, dict[str, float]()
    if group is not None and query_id is not None:
        found, left = len(group.found(query_id)), group.estimate_left(query_id)
        is_whole, counts = group.is_whole(query_id), asdict(group.counts)
    precision = 1.0 if is_whole else expected_precision(found, left)
    by_name = {
        one.summary: summary
        for one in preference.priorities
        if (summary := sources[one.source].summarised.at_work.get(one.summary)) is not None
    }
    if query_id is None:
        notes: tuple[str, ...] = ("it is not registered, so nothing is found for it",)
    elif group is None:
        notes = ("nothing is looked for: it is paused, or a summary of it was dropped",)
    else:
        notes = _notes(preference, kind, counts, precision, is_whole)
    return PlanPreference(
        None if numbered is None else group_id(numbered),
        kind,
        preference.order,
        tuple(map(_priority, preference.priorities)),
        preference.fade,
        preference.form,
        preference.window_ms,
        tuple(map(_summary, by_name.values())),
        0 if numbered is None else len(numbered.members),
        counts,
        found,
        left,
        precision,
        is_whole,
        notes,
        unscaled,
    )


def group_id(numbered: Numbered) -> str:
    """The id of a group as an entity: its sources, and when it came among all groups.

    One that stands over the same sources later has another number.
    """
    return f"promising/{'+'.join(numbered.key.sources)}/{numbered.number}"


def _priority(one: Priority) -> PlanPriority:
    return PlanPriority(one.source, one.summary, render_priority(one))


def _summary(summary: Summary) -> PlanSummary:
    definition, zones = summary.definition, summary.zones
    return PlanSummary(
        definition.name,
        definition.stream,
        definition.attribute,
        definition.settings.kind,
        definition.reach_ms,
        tuple(np.bincount(zones.granularity, minlength=definition.depth + 1)[1:].tolist()),
        int(zones.rows.sum()),
        float(summary.error_bounds().max(initial=0.0)),
        summary.nbytes,
    )


def _notes(
    preference: Preference,
    kind: GroupKind,
    counts: Mapping[str, float],
    precision: float,
    is_whole: bool,
) -> tuple[str, ...]:
    notes = []
    if is_whole:
        notes.append("nothing is left: the answer is the exact one")
    if counts["cut"]:
        notes.append(f"{counts['cut']:,} entries were cut, since the set was full: nobody visits their rows")
    if counts["lapsed"]:
        notes.append(f"{counts['lapsed']:,} entries left the windows before they were visited")
    if counts["unranked"]:
        notes.append(f"{counts['unranked']:,} entries have no priority: it is NULL, NaN or an error")
    if preference.order == "weighted" and precision < UNFAITHFUL and not is_whole:
        of = "one of its streams" if kind == "join" else "its stream"
        notes.append(
            f"SAMPLE({max(1.0, 100 * precision):.2g}) of {of} gives about as much output, and a picture "
            "that is as faithful"
        )
    return tuple(notes)
