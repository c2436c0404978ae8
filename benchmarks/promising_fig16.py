"""Figure 16: AVG and SUM of the price over many selections: the error against the exact ones.

The 100 queries of figure 15, each with AVG and SUM of the price over the rows of the last minute, at gaps of
10 to 100 units. By promising tuples AVG is `WITH PREFERENCE weighted` and SUM `desc` by the estimated count.
The error is the mean of its square over queries and seconds, from the second minute on. `pt_remainder` adds
to a SUM what the summaries estimate is left, times the mean of the prices found.

The paper saw both errors fall with the gap, and promising tuples below SIMPLE, on an axis of 2 to 22 for AVG
and of 150 to 400 for SUM. What must hold: promising tuples below SIMPLE from a gap of 50 on, and SUM with
the remainder below SUM without.

Figures: `mse_avg.<line>.gap<G>` for `pt` and `simple`; `mse_sum.<line>.gap<G>` for `pt`, `pt_remainder`,
`simple`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from statistics import median

import numpy as np

from benchmarks.report import Report
from benchmarks.stores import runs
from benchmarks.stores.intervals import aggregates, draw_intervals, mse, simple
from benchmarks.stores.runs import WINDOW_S, Claim, Measure, Points
from benchmarks.stores.selecting import Selecting
from benchmarks.stores.structures import costs_of

QUERIES = 100
STEP_MS = 500

MEASURES = {
    "mse_avg": Measure(lambda *_: 0.0, "MSE of AVG", (2, 22)),
    "mse_sum": Measure(lambda *_: 0.0, "MSE of SUM", (150, 400)),
}

FROM_50 = (50, 100)

CLAIMS = [
    Claim("AVG by PT is below SIMPLE's", "mse_avg", "pt", "simple", 1, FROM_50, most=True),
    Claim("SUM by PT is below SIMPLE's", "mse_sum", "pt", "simple", 1, FROM_50, most=True),
    Claim(
        "SUM with the remainder is below SUM without", "mse_sum", "pt_remainder", "pt", 1, FROM_50, most=True
    ),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that all figures over the stores have."""
    runs.add_arguments(parser, seconds=180)
    parser.add_argument("--queries", type=int, default=QUERIES, help="(default: %(default)s)")
    parser.set_defaults(step_ms=STEP_MS)


def run(options: argparse.Namespace) -> Report:
    """All lines at all gaps."""
    points: Points = {measure: {} for measure in MEASURES}
    for gap in options.gaps:
        found: dict[tuple[str, str], list[float]] = {}
        for seed in runs.seeds(options):
            for of, value in measure(options, seed, gap).items():
                found.setdefault(of, []).append(value)
        for (key, line), values in found.items():
            points[key].setdefault(line, {})[gap] = median(values)
        print(f"gap {gap}: " + ", ".join(f"{k} {n} {median(v):.4g}" for (k, n), v in found.items()))
    runs.table(points)
    runs.print_verdicts(CLAIMS, points)
    runs.shape(points, MEASURES)
    return runs.report(points, MEASURES)


def measure(options: argparse.Namespace, seed: int, gap: float) -> Mapping[tuple[str, str], float]:
    """The errors of one run, by measure and line."""
    costs, seconds = costs_of(options), int(options.seconds)
    rows = runs.rows_of(options, seed, gap).of(0)
    intervals = draw_intervals(seed, rows, options.queries)
    wanted = intervals.wants(rows)
    exact = aggregates(rows, wanted, seconds, WINDOW_S, None)
    fed = aggregates(rows, wanted & simple(rows, options.queries, costs.evaluation), seconds, WINDOW_S, None)
    errors = {
        ("mse_avg", "simple"): mse(fed.average, exact.average),
        ("mse_sum", "simple"): mse(fed.total, exact.total),
    }
    for order, key in (("weighted", "mse_avg"), ("desc", "mse_sum")):
        seen = Selecting(order, window_s=WINDOW_S, costs=costs, step_ms=options.step_ms).run(rows, intervals)
        told = aggregates(rows, seen.found, seconds, WINDOW_S, seen.since)
        if key == "mse_avg":
            errors[key, "pt"] = mse(told.average, exact.average)
            continue
        errors[key, "pt"] = mse(told.total, exact.total)
        left = seen.left[:, WINDOW_S : seconds + 1]
        estimated = told.total + left * np.nan_to_num(told.average)
        errors[key, "pt_remainder"] = mse(estimated, exact.total)
    return errors
