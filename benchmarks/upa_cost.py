"""The cost model of strategies against what operators do: predicted work, and whether the choice is the best.

Each query of the figures runs by each strategy that it can have, in the plan that the model finds best for
that. Predicted is how many entries the cost model
says are looked at, put in and taken out (EXPLAIN, from rates and sizes as the engine has measured them),
counted is what the operators counted. `auto` chooses by the model; its time is compared with that of the
fastest strategy that was measured.

Figures: `predicted_per_1000.<query>.<strategy>.w<units>`, `counted_per_1000...`, per 1,000 rows of all links;
`model_error.<query>.<strategy>.w<units>`, the larger of both by the smaller, and `model_error.max`;
`auto_to_best.<query>.w<units>`, the time of `auto` by that of the fastest, and `auto_to_best.max`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from benchmarks.link_queries import COMMON, ENDS, JOINED_ABSENT, NEGATION, NEGATION_JOINED, SOURCES, pairs
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.update_patterns import (
    LABELS,
    STRATEGIES,
    WINDOWS,
    Query,
    measure,
    rows_for,
)
from benchmarks.update_patterns import add_arguments as add_common
from tureen.errors import TureenError

QUERIES: Mapping[str, Query] = {
    "fig9": pairs("ftp"),
    "fig10": pairs("telnet"),
    "fig11": SOURCES,
    "fig12": ENDS,
    "fig15": NEGATION,
    "fig16": COMMON,
    "fig17": JOINED_ABSENT,
    "fig17_bags": NEGATION_JOINED,
}
TRIED = ("nt", "direct", "upa10", "upa50", "negative", "indexed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    add_common(parser)
    parser.set_defaults(windows=[WINDOWS[0], WINDOWS[3]], times=1)
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=list(QUERIES), help="(default: all)")


def run(options: argparse.Namespace) -> Report:
    """Each query, by each strategy, at each window."""
    figures: dict[str, Figure] = {}
    points: list[tuple[float, float]] = []
    to_best: list[float] = []
    for window in options.windows:
        rows = rows_for(options, window)
        if rows is None:
            continue
        for name in options.queries:
            rates: dict[str, float] = {}
            for strategy in (*TRIED, "auto"):
                if options.strategies and strategy not in options.strategies:
                    continue
                try:
                    asked_for = STRATEGIES[strategy]
                    point = measure(QUERIES[name], asked_for, rows, window, options, chooses=True)
                except TureenError as refused:
                    print(f"{name}, {LABELS[strategy]}: refused, {refused}")
                    continue
                rates[strategy] = point.rows_per_s
                at = f"{name}.{strategy}.w{window}"
                counted, predicted = point.work.total, point.predicted or 0.0
                figures[f"predicted_per_1000.{at}"] = predicted
                figures[f"counted_per_1000.{at}"] = counted
                figures[f"model_error.{at}"] = max(predicted, counted) / max(1.0, min(predicted, counted))
                points.append((counted, predicted))
                print(
                    f"{name}, {LABELS[strategy]}, {window:,} units: {predicted:,.0f}, counted {counted:,.0f}"
                )
            if "auto" in rates:
                ratio = max(rates.values()) / rates["auto"]
                figures[f"auto_to_best.{name}.w{window}"] = ratio
                to_best.append(ratio)
    if points:
        errors = [value for key, value in figures.items() if key.startswith("model_error.")]
        figures["model_error.max"] = max(map(float, errors))
    if to_best:
        figures["auto_to_best.max"] = max(to_best)
    line = Series("queries and strategies", *zip(*sorted(points), strict=True)) if points else None
    return Report(figures, line and Plot("work per 1,000 rows, counted", "predicted", [line], log=True))
