"""A join that is offered more than it can do, in measured time: delays, and what is found instead of all.

The two stores of `promising-fig11`, joined over a minute by an engine, each pair through a function of 20
us. What the exact join sustains is measured first: rows of a plain query, with the function for each pair.
Then 2, 4 and 8 times that are offered, and the queries are `WITH PREFERENCE desc`, `asc`, `weighted`; steps
carry grants of the time that is left. `skip` has the same time and an exact index: a row that comes while
another probes never probes.

What must hold: input never stalls, 99% of the rows are in after 100 ms; at least 0.95 times the pairs of
`skip`; at 8 times, `asc` has at least 3 times the outliers of `skip`, in percent of what was found.

Figures: `exact_rows_per_s`; `delay_ms.p99.x<N>`, over all three orders; `ratio_to_skip.x<N>`, pairs of
`desc` to those of `skip`; `pct_of_exact.<line>.x<N>`, `pct_outliers.<line>.x<N>` and `hist_mse.<line>.x<N>`
for `desc`, `asc`, `weighted`, `skip`.
"""

from __future__ import annotations

import argparse
import time
from typing import get_args

import numpy as np

from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.stores import wall
from benchmarks.stores.exact import exact
from benchmarks.stores.measures import hist_mse, pct_of_exact, pct_outliers
from benchmarks.stores.runs import WINDOW_S
from benchmarks.stores.sales import draw
from benchmarks.stores.simple import Simple
from engine.language.preference import PreferenceOrder

GAP = 100
STEP_MS = 2_000
WARM_S = 0.3
DELAY_MS = 100.0
RARE_FROM = 8
"""Times what is sustained, from which on outliers are compared."""
X_LABEL = "times what is sustained"
PLAIN = (
    "SELECT a.item, a.sold, b.sold AS sold_b "
    "FROM store0 a [RANGE {0}], store1 b [RANGE {0}] WHERE a.item = b.item"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--times",
        action=Numbers,
        nargs="+",
        default=[2, 4, 8],
        help="of what is sustained (default: %(default)s)",
    )
    parser.add_argument(
        "--sustained",
        type=int,
        default=120,
        help="seconds of event time over which the exact join is measured (default: %(default)s)",
    )
    parser.add_argument("--wall-seconds", type=float, default=4.0, help="of each run (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """All orders at all rates."""
    window_ms = 1_000 * WINDOW_S
    sustained = measure_exact(options.seed, options.sustained, window_ms)
    print(f"the exact join sustains {sustained:,.0f} rows/s")
    warm = wall.at_distinct_instants(draw(options.seed, 30, GAP))
    for order in get_args(PreferenceOrder):
        wall.run(warm, order, window_ms, len(warm) / WARM_S)
    figures: dict[str, Figure] = {"exact_rows_per_s": sustained}
    delays: list[float] = []
    for times in options.times:
        rate = times * sustained
        seconds = rate * options.wall_seconds * GAP / 2_000
        sales = wall.at_distinct_instants(draw(options.seed, seconds, GAP))
        whole = exact(sales, window_ms)
        outputs, late = {}, []
        insertion_us = 0.0
        for order in get_args(PreferenceOrder):
            done = wall.run(sales, order, window_ms, rate)
            outputs[order] = done.output
            late.append(done.delays_s[int(WARM_S * rate) :])
            insertion_us = max(insertion_us, done.insertion_us)
        simple = Simple(chains=None, skip=True, visit=wall.FUNCTION_US, insertion=insertion_us)
        outputs["skip"] = simple.run(sales, window_ms, 1e6 * np.arange(len(sales)) / rate)
        for name, output in outputs.items():
            figures[f"pct_of_exact.{name}.x{times}"] = pct_of_exact(output, whole)
            figures[f"pct_outliers.{name}.x{times}"] = pct_outliers(output, whole)
            figures[f"hist_mse.{name}.x{times}"] = hist_mse(output, whole)
        figures[f"ratio_to_skip.x{times}"] = outputs["desc"].pairs / max(1, outputs["skip"].pairs)
        figures[f"delay_ms.p99.x{times}"] = 1_000 * float(np.quantile(np.concatenate(late), 0.99))
        delays.append(float(figures[f"delay_ms.p99.x{times}"]))
        print_verdicts(figures, times, insertion_us)
    times_of = list(options.times)
    lines = ("desc", "asc", "weighted", "skip")
    plots = [
        Plot("times what is sustained", "99th percentile of delay, ms", [Series("PT", times_of, delays)])
    ]
    plots += [
        Plot(
            "times what is sustained",
            label,
            [
                Series(line, times_of, [float(figures[f"{key}.{line}.x{n}"]) for n in times_of])
                for line in lines
            ],
        )
        for key, label in (
            ("pct_of_exact", "% of the exact output"),
            ("pct_outliers", "% of outliers in the output"),
            ("hist_mse", "Hist-MSE, squared percent"),
        )
    ]
    return Report(figures, plots)


def print_verdicts(figures: dict[str, Figure], times: int, insertion_us: float) -> None:
    """Print whether what must hold does."""
    at = f"x{times}"
    delay, ratio = float(figures[f"delay_ms.p99.{at}"]), float(figures[f"ratio_to_skip.{at}"])
    rare = float(figures[f"pct_outliers.asc.{at}"]) / max(1e-9, float(figures[f"pct_outliers.skip.{at}"]))
    print(f"{times} times: an insertion takes {insertion_us:.1f} us a row")
    for holds, said in (
        (delay < DELAY_MS, f"99% of the rows are in within 100 ms: {delay:.1f} ms"),
        (ratio >= 0.95, f"at least 0.95 times the pairs of skip: {ratio:.2f}"),
        (rare >= 3 or times < RARE_FROM, f"asc has 3 times the outliers of skip from 8 times on: {rare:.2f}"),
    ):
        print(f"  {'holds' if holds else 'does not hold'}: {said}")


def measure_exact(seed: int, seconds: int, window_ms: int) -> float:
    """Rows a second of a plain query, with the function for each of its pairs."""
    sales = wall.at_distinct_instants(draw(seed, seconds, GAP))
    text = PLAIN.format(f"{window_ms} MILLISECONDS")
    taken: list[float] = []
    for _ in range(2):  # the first one compiles
        feed = wall.Feed(wall.engine_of(sales, text, summarised=False), sales)
        began = time.process_time()
        for until in range(STEP_MS, 1_000 * seconds + STEP_MS, STEP_MS):
            feed.enter(until)
        taken.append(time.process_time() - began)
    pairs = exact(sales, window_ms).pairs
    return len(sales) / (taken[-1] + 1e-6 * wall.FUNCTION_US * pairs)
