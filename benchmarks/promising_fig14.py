"""Figure 14: the outliers of the join: how much is found, and how much of that is rare.

As figure 11, `WITH PREFERENCE asc`: items with few rows come first. A pair is an outlier if its item's count
in the exact output is within the lowest 5% of the exact output's tuples; the paper says the least 5% of
frequencies, and over the rows of the streams these never join.

The paper saw promising tuples find fewer tuples than SIMPLE-SHJ, on an axis of 0 to 16%, most of them
outliers, on an axis of 0 to 55%. What must hold: at least 3 times SIMPLE-SHJ's share of outliers up to a gap
of 70, and at least 1.5 times at 100.

Figures: `pct_of_exact.<line>.gap<G>` and `pct_outliers.<line>.gap<G>`, in percent of what a line found, for
`pt`, `shj_oldest`, `shj_newest`, `skip`, `index`.
"""

from __future__ import annotations

import argparse

from benchmarks.report import Report
from benchmarks.stores.measures import pct_of_exact, pct_outliers
from benchmarks.stores.promising import Promising
from benchmarks.stores.runs import WINDOW_S, Claim, Measure, add_arguments, compare
from benchmarks.stores.simple import lines
from benchmarks.stores.structures import costs_of

__all__ = ["add_arguments", "run"]

MEASURES = {
    "pct_of_exact": Measure(pct_of_exact, "% of the exact output", (0, 16)),
    "pct_outliers": Measure(pct_outliers, "% of outliers in the output", (0, 55)),
}

CLAIMS = [
    claim
    for other in ("shj_oldest", "shj_newest")
    for claim in (
        Claim(f"at least 3 times the outliers of {other} up to 70", "pct_outliers", "pt", other, 3, (0, 70)),
        Claim(
            f"at least 1.5 times the outliers of {other} at 100", "pct_outliers", "pt", other, 1.5, (71, 100)
        ),
    )
] + [Claim("more outliers than an exact index in order of arrival", "pct_outliers", "pt", "index", 1)]


def run(options: argparse.Namespace) -> Report:
    """All lines at all gaps."""
    costs = costs_of(options)
    every = {"pt": Promising("asc", costs=costs, step_ms=options.step_ms), **lines(costs)}
    return compare(options, every, MEASURES, 1_000 * WINDOW_S, CLAIMS)
