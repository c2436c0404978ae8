"""Figure 12: the join of all rows so far, with a fade: how much is found, and how far apart pairs are.

As figure 11 without a window, `FADE FACTOR 0.8`, summaries of depth 5, so that they reach over the run; with
priorities by `count`, as the paper has them, and by `density`, the estimate per row of a cell.

The paper saw more output than SIMPLE-SHJ, on an axis of 0 to 16%, and fresher, on an axis of 0 to 180 s: a
row looks at the recent ones first. What must hold of `density` from a gap of 50 on: at least twice the
output of SIMPLE-SHJ from either end, and at most half the distance of SIMPLE-SHJ from the oldest row.

Figures: `pct_of_exact.<line>.gap<G>` and `distance_s.<line>.gap<G>`, the two timestamps of a pair apart, on
average, for `pt_count`, `pt_density`, `shj_oldest`, `shj_newest`, `skip`, `index`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from benchmarks.report import Report
from benchmarks.stores import runs
from benchmarks.stores.exact import EVER
from benchmarks.stores.measures import pct_of_exact
from benchmarks.stores.promising import Promising
from benchmarks.stores.runs import Claim, Line, Measure, compare
from benchmarks.stores.simple import lines
from benchmarks.stores.structures import costs_of

FADE, DEPTH = 0.8, 5
GAPS = [10, 30, 50, 70, 100]

MEASURES = {
    "pct_of_exact": Measure(pct_of_exact, "% of the exact output", (0, 16)),
    "distance_s": Measure(lambda found, _: found.distance_s, "timestamps apart, s", (0, 180)),
}

CLAIMS = [
    Claim(
        f"density finds at least twice as much as {other}", "pct_of_exact", "pt_density", other, 2, (50, 100)
    )
    for other in ("shj_oldest", "shj_newest")
] + [
    Claim(
        "pairs are at most half as far apart",
        "distance_s",
        "pt_density",
        "shj_oldest",
        0.5,
        (50, 100),
        most=True,
    ),
    Claim("density is fresher than count", "distance_s", "pt_density", "pt_count", 1, (50, 100), most=True),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that all figures over the stores have."""
    runs.add_arguments(parser, GAPS, 150)


def run(options: argparse.Namespace) -> Report:
    """All lines at all gaps."""
    costs = costs_of(options)
    every: Mapping[str, Line] = {
        **{
            f"pt_{form}": Promising(
                "desc", fade=FADE, form=form, depth=DEPTH, costs=costs, step_ms=options.step_ms
            )
            for form in ("count", "density")
        },
        **lines(costs),
    }
    return compare(options, every, MEASURES, EVER, CLAIMS)
