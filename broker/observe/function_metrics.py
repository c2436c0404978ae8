"""Prometheus metrics of users' functions: rows, time, and errors by reason."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from engine.language.functions import FunctionCatalogue


def of_functions(catalogue: FunctionCatalogue) -> Iterator[Metric]:
    """As counted in this process."""
    rows = CounterMetricFamily(
        "tureen_function_rows", "Rows that users' functions were called for.", labels=["function"]
    )
    spent = CounterMetricFamily("tureen_function_seconds", "Time of these calls.", labels=["function"])
    errors = CounterMetricFamily(
        "tureen_function_errors",
        "Of these rows, those that are errors: the function raised, gave what is not of its type (mistyped), "
        "took too long (late), ended its process (crashed), or lost too much time to be called (resting).",
        labels=["function", "reason"],
    )
    for one in catalogue.users:
        rows.add_metric([one.name], one.meter.rows)
        spent.add_metric([one.name], one.meter.spent_ns / 1e9)
        for reason, count in dict(one.meter.errors).items():
            errors.add_metric([one.name, reason], count)
    yield from (rows, spent, errors)
