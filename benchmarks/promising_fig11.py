"""Figure 11: how much of the exact join is found, by the gap between rows: promising tuples and SIMPLE-SHJ.

Two stores join on the item over one minute, `WITH PREFERENCE desc`, so that items that sell most come first.
A row visited takes 2.5 units, the gap between two rows of a store is 10 to 100 units on average.

The paper saw promising tuples above SIMPLE-SHJ throughout, on an axis of 0 to 80%; its curves are lost. What
must hold: at least 1.8 times the output of SIMPLE-SHJ, whichever end of its chains it begins at, from a gap
of 50 on.

Figures: `pct_of_exact.<line>.gap<G>` for the lines `pt`, `shj_oldest`, `shj_newest`, `skip`, which lets a
probe end and drops the rows that come meanwhile, and `index`, which has an exact index and no preference.
"""

from __future__ import annotations

import argparse

from benchmarks.report import Report
from benchmarks.stores.measures import pct_of_exact
from benchmarks.stores.promising import Promising
from benchmarks.stores.runs import WINDOW_S, Claim, Measure, add_arguments, compare
from benchmarks.stores.simple import lines
from benchmarks.stores.structures import costs_of

__all__ = ["add_arguments", "run"]

MEASURES = {"pct_of_exact": Measure(pct_of_exact, "% of the exact output", (0, 80))}

CLAIMS = [
    Claim(f"PT finds at least 1.8 times as much as {other}", "pct_of_exact", "pt", other, 1.8, (50, 100))
    for other in ("shj_oldest", "shj_newest")
] + [
    Claim("PT finds more than whole rows dropped at random", "pct_of_exact", "pt", "skip", 1.0, (50, 100)),
    Claim("PT finds as much as an exact index", "pct_of_exact", "pt", "index", 1.0, (50, 100)),
]


def run(options: argparse.Namespace) -> Report:
    """All lines at all gaps."""
    costs = costs_of(options)
    every = {"pt": Promising("desc", costs=costs, step_ms=options.step_ms), **lines(costs)}
    return compare(options, every, MEASURES, 1_000 * WINDOW_S, CLAIMS)
