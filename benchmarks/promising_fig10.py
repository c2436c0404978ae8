"""Figure 10: when summaries are not worth it: outputs a row with small gaps and with small windows.

As figure 9, first with gaps of 10 to 50 units and a window of a minute, then with a gap of 100 and windows of
10 to 120 s; beside it an exact index without a preference.

The paper saw that below gaps of 50 the structures that are cheap to insert into do better, on an axis of 0 to
6, and that summaries gain as windows grow, on an axis of 0 to 16. Here T1's visits are so much dearer than an
insertion that summaries win at every gap; among them the cheaper one wins at gaps of 10.

Figures: `out_per_in.gap<G>.<structure>` and `out_per_in.window<S>.<structure>`, output tuples a row of
input, for `t1` to `t4` and `index`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from statistics import median

from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.stores import runs
from benchmarks.stores.runs import WINDOW_S, Line, Points
from benchmarks.stores.simple import lines as simple_lines
from benchmarks.stores.structures import costs_of, structures

GAPS = list(range(10, 51, 5))
WINDOWS = [10, *range(20, 121, 20)]
GAP = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that all figures over the stores have, and the windows."""
    runs.add_arguments(parser, GAPS, 80)
    parser.add_argument(
        "--windows", action=Numbers, nargs="+", default=WINDOWS, help="seconds (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """All structures at all gaps, then at all windows."""
    costs = costs_of(options)
    lines: Mapping[str, Line] = {
        **structures(costs, options.step_ms),
        "index": simple_lines(costs)["index"],
    }
    by_gap = {gap: measure(options, lines, gap, WINDOW_S) for gap in options.gaps}
    by_window = {window: measure(options, lines, GAP, window) for window in options.windows}
    points: Points = {
        "gap": {name: {gap: of[name] for gap, of in by_gap.items()} for name in lines},
        "window": {name: {window: of[name] for window, of in by_window.items()} for name in lines},
    }
    runs.table({"out_per_in": points["gap"]})
    runs.table({"out_per_in": points["window"]}, "window")
    for title, high, over in (("gap", 6, points["gap"]), ("window", 16, points["window"])):
        told = ", ".join(f"{value / over['t1'][at]:.1f} at {at}" for at, value in over["t4"].items())
        most = max(max(values.values()) for name, values in over.items() if name != "index")
        print(f"outputs by {title}: up to {most:.2f} here, the paper's axis 0 to {high}; T4 to T1: {told}")
    figures: dict[str, Figure] = {
        f"out_per_in.{title}{at}.{name}": value
        for title, by_line in points.items()
        for name, over in by_line.items()
        for at, value in over.items()
    }
    labels = {"gap": "mean gap, units", "window": "window, s"}
    plots = [
        Plot(
            labels[title],
            "outputs a row",
            [Series(name, list(over), list(over.values())) for name, over in points[title].items()],
        )
        for title in labels
    ]
    return Report(figures, plots)


def measure(
    options: argparse.Namespace, lines: Mapping[str, Line], gap: int, window_s: int
) -> dict[str, float]:
    """Outputs a row of each line, the median over the seeds."""
    found: dict[str, list[float]] = {name: [] for name in lines}
    for seed in runs.seeds(options):
        rows = runs.rows_of(options, seed, gap)
        for name, line in lines.items():
            found[name].append(line.run(rows, 1_000 * window_s).per_row)
    print(f"gap {gap}, window {window_s} s: " + ", ".join(f"{n} {median(v):.2f}" for n, v in found.items()))
    return {name: median(values) for name, values in found.items()}
