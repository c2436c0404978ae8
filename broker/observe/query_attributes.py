"""What of a query can be set while it runs, as attributes of its entity."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import get_args

from broker.base import options as query_options
from broker.base.entries import QueryEntry
from engine.language.preference import preference_of
from engine.language.query import Query
from engine.model.attributes import Attribute, NumberRange
from engine.model.maintenance import (
    LATENCY_MS_MAX,
    PARTITIONS_MAX,
    PriorityForm,
    QueryOptions,
    Strategy,
    Structure,
    Wanted,
)
from engine.model.tolerance import EXACT, WEIGHT_DEFAULT, WEIGHT_MAX, Tolerance
from engine.standing.query import StandingQuery
from tureen.errors import OptionRefused

AUTO = "auto"
TOLERANCES = ("max_", "paused")
"""Options that begin so decide what an answer is."""
PREFERENCES = {"fade", "priority"}
"""Options of a preference, which decide what an answer is while work is left."""


def query_attributes(
    entry: QueryEntry, standing: StandingQuery | None, changeable: Collection[str]
) -> tuple[Attribute, ...]:
    """What of a query can be set, as its registration has it. standing: None where it does not stand.
    changeable: its options that can be.
    """
    options = query_options.as_text(entry.options)
    template = None if standing is None else standing.template
    weight, tolerance = (None, EXACT) if template is None else (template.weight, template.tolerance)
    with contextlib.suppress(OptionRefused):  # a refused registration may have any
        asked = query_options.weight_of(entry.options)
        weight = weight if asked is None else asked
        tolerance = tolerance.under(QueryOptions.of(options).tolerance)
    found = (
        *_of_state(entry.state, options),
        _weight(weight),
        *_of_tolerance(tolerance),
        *_of_processing(options),
    )
    if standing is not None and standing.template.summaries:
        found += _of_preference(standing.query, options)
    known = {attribute.name for attribute in found}
    if standing is not None:
        known |= PREFERENCES
    more = [name for name in changeable if name not in known]
    return found + tuple(
        Attribute(
            name,
            entry.options.get(name),
            "an option of its registration",
            accepts="as at the registration",
            clearable=True,
            changes_answers=name.startswith(TOLERANCES) or name in PREFERENCES,
        )
        for name in more
    )


def _of_preference(query: Query, options: Mapping[str, str]) -> tuple[Attribute, ...]:
    """What of a preference can be set; nothing of a query that has none."""
    preference = None
    with contextlib.suppress(OptionRefused):
        preference = preference_of(query, QueryOptions.of(options))
    if preference is None:
        return ()
    return (
        Attribute(
            "fade",
            preference.fade,
            "the factor by which a row counts less for each granularity that it is older",
            bounds=NumberRange(0, 1, low_excluded=True),
            kind="number",
            changes_answers=True,
            clearable=True,
        ),
        Attribute(
            "priority",
            preference.form,
            "whether the estimate of a value counts, or its share of the rows beside it",
            choices=get_args(PriorityForm),
            changes_answers=True,
            clearable=True,
        ),
    )


def _of_state(state: str, options: Mapping[str, str]) -> tuple[Attribute, ...]:
    return (
        Attribute("state", state, "whether it runs"),
        Attribute(
            "paused",
            state == "PAUSED",
            "it stands, and has no answer until it is resumed",
            accepts="true or false",
            changes_answers=True,
        ),
        Attribute(
            "release",
            options.get("release", "false") == "true",
            "while it is paused no rows are kept for its windows",
            accepts="true or false",
            changes_answers=True,
        ),
    )


def _weight(weight: float | None) -> Attribute:
    return Attribute(
        "weight",
        WEIGHT_DEFAULT if weight is None else weight,
        "how much it counts beside others where memory, time or work is short; NULL: what its text says, "
        "else 1",
        bounds=NumberRange(0, WEIGHT_MAX, low_excluded=True),
        kind="number",
        clearable=True,
    )


def _of_tolerance(tolerance: Tolerance) -> tuple[Attribute, ...]:
    return (
        Attribute(
            "max_fp",
            tolerance.max_fp,
            "the share of wrong rows that its answer may have; NULL: what its text says, else none",
            bounds=NumberRange(0, 1),
            kind="number",
            clearable=True,
            changes_answers=True,
        ),
        Attribute(
            "max_fn",
            tolerance.max_fn,
            "the share of missing rows that its answer may have; NULL: what its text says, else none",
            bounds=NumberRange(0, 1),
            kind="number",
            clearable=True,
            changes_answers=True,
        ),
        Attribute(
            "max_error",
            tolerance.max_error,
            "the relative error that its aggregates may have; NULL: what its text says, else none",
            bounds=NumberRange(0, 1, low_excluded=True),
            kind="number",
            clearable=True,
            changes_answers=True,
        ),
    )


def _of_processing(options: Mapping[str, str]) -> tuple[Attribute, ...]:
    """How soon its records are taken, and how its answer and the rows of its changes are kept."""
    return (
        Attribute(
            "latency_ms_max",
            int(options["latency_ms_max"]) if "latency_ms_max" in options else None,
            "how long records of its streams may wait under the scheduling policy chain-deadline; "
            "NULL: no bound",
            unit="ms",
            bounds=NumberRange(1, LATENCY_MS_MAX),
            kind="integer",
            clearable=True,
        ),
        Attribute(
            "maintenance",
            options.get("maintenance", AUTO),
            "what is kept of it: nothing (none), which rows match (lazy), the answer (eager), or what is "
            "cheapest (auto)",
            choices=get_args(Wanted),
            clearable=True,
        ),
        Attribute(
            "strategy",
            options.get("strategy", AUTO),
            "how the operators of its changes keep rows until they leave: as negative tuples (nt), by their "
            "exit (direct), by update pattern (upa), or as is cheapest (auto)",
            choices=(AUTO, *get_args(Strategy)),
            clearable=True,
        ),
        Attribute(
            "structure",
            options.get("structure", AUTO),
            "of the strategy upa: what rows are kept in that leave before their time",
            choices=(AUTO, *get_args(Structure)),
            clearable=True,
        ),
        Attribute(
            "partitions",
            options.get("partitions", AUTO),
            "parts in which rows stand by their exit; auto: state_partitions of state-buffers",
            clearable=True,
            accepts=f"auto, or a whole number from 1 to {PARTITIONS_MAX:,}",
        ),
    )
