"""Figure 13: a faithful picture of the join: how much is found, and how its items differ from the exact ones.

As figure 11, `WITH PREFERENCE weighted`: time is shared in the ratio of the estimates. Hist-MSE is the sum
over 100 intervals of item ids of the squared difference, in percent, between the exact output's share and the
one found.

The paper saw promising tuples better in both, on axes of 0 to 40. What must hold from a gap of 50 on:
Hist-MSE at most half of SIMPLE-SHJ's, from either end, and at least 1.3 times its output and 1.2 times that
of whole rows dropped at random (`skip`), whose picture is hard to beat.

Figures: `pct_of_exact.<line>.gap<G>` and `hist_mse.<line>.gap<G>` for `pt`, `shj_oldest`, `shj_newest`,
`skip`, `index`.
"""

from __future__ import annotations

import argparse

from benchmarks.report import Report
from benchmarks.stores.measures import hist_mse, pct_of_exact
from benchmarks.stores.promising import Promising
from benchmarks.stores.runs import WINDOW_S, Claim, Measure, add_arguments, compare
from benchmarks.stores.simple import lines
from benchmarks.stores.structures import costs_of

__all__ = ["add_arguments", "run"]

FROM_50 = (50, 100)

MEASURES = {
    "pct_of_exact": Measure(pct_of_exact, "% of the exact output", (0, 40)),
    "hist_mse": Measure(hist_mse, "Hist-MSE, squared percent", (0, 40)),
}

CLAIMS = [
    claim
    for other in ("shj_oldest", "shj_newest")
    for claim in (
        Claim(f"Hist-MSE at most half of {other}'s", "hist_mse", "pt", other, 0.5, FROM_50, most=True),
        Claim(f"at least 1.3 times the output of {other}", "pct_of_exact", "pt", other, 1.3, FROM_50),
    )
] + [
    Claim("at least 1.2 times the output of skip", "pct_of_exact", "pt", "skip", 1.2, FROM_50),
    Claim("a better picture than skip's", "hist_mse", "pt", "skip", 1.0, FROM_50, most=True),
]


def run(options: argparse.Namespace) -> Report:
    """All lines at all gaps."""
    costs = costs_of(options)
    every = {"pt": Promising("weighted", costs=costs, step_ms=options.step_ms), **lines(costs)}
    return compare(options, every, MEASURES, 1_000 * WINDOW_S, CLAIMS)
