"""Errors of aggregates over a sample, measured from the rows that it holds at the instant of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from engine.model.approximation import Approximation
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.pipeline import evaluate
from engine.operators.scan import ScanAt
from engine.overload.sampled_aggregates import widest_error
from engine.standing.query import SampledAggregates


def with_measured_error(
    tags: tuple[Approximation, ...],
    measured: SampledAggregates,
    at: Mapping[SourceName, ScanAt],
    rows_max: int,
    limits: Limits,
    *,
    declared: bool = False,
) -> tuple[Approximation, ...]:
    """The tags of an answer, those of its lowered rates with the error that its rows tell: the widest of all
    groups and columns; that which was expected where they tell none. at: how the sources stand. declared:
    those of samples in the text instead.

    Cost: the query once more. Raises LimitExceeded as the query does.
    """
    table = evaluate(measured.query, at, rows_max, limits).table
    aggregate = measured.query.stages[-1].aggregate
    assert aggregate is not None
    columns = [
        column.cast(pa.float64()).fill_null(0.0).to_numpy() for column in table.columns[len(aggregate.keys) :]
    ]
    error = widest_error(measured.functions, columns, measured.share)
    if error is None:
        return tags
    return tuple(
        replace(tag, expected=replace(tag.expected, error=error))
        if tag.kind == "sample" and (tag.origin == "declared") == declared
        else tag
        for tag in tags
    )


def is_sampled(tag: Approximation) -> bool:
    """Whether the text samples aggregates."""
    return tag.kind == "sample" and tag.origin == "declared" and bool(tag.unscaled)
