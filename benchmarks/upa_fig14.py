"""Figure 14: the average state of query 2 over distinct pairs of source and destination.

The paper saw the state of UPA clearly smaller, though less so than in figure 13, since the result is ten
times as large. The rows of the streams, which the engine keeps for all queries, are counted apart.
"""

import argparse

from benchmarks.distincts import lists_of
from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import ENDS
from benchmarks.report import Report
from benchmarks.update_patterns import add_arguments

__all__ = ["add_arguments", "run"]

LARGE = (50_000, 200_000)
EXPERIMENT = Experiment(
    dict.fromkeys(("nt", "direct", "upa10", "auto"), ENDS),
    "upa10",
    lists_of(ENDS),
    (
        Claim("UPA has clearly less state than NT", "upa10", "nt", 2.0, LARGE, "state"),
        Claim("UPA has clearly less state than DIRECT", "upa10", "direct", 2.0, LARGE, "state"),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    return EXPERIMENT.run(options)
