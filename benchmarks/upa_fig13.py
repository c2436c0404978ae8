"""Figure 13: the average state of query 2 over the distinct sources of a link, by strategy and window.

The paper saw the state of UPA up to a hundred times smaller: delta* keeps two rows a value at most and does
not store its input. The rows of the streams, which the engine keeps for all queries, are counted apart.
"""

import argparse

from benchmarks.distincts import lists_of
from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import SOURCES
from benchmarks.report import Report
from benchmarks.update_patterns import add_arguments

__all__ = ["add_arguments", "run"]

LARGE = (50_000, 200_000)
EXPERIMENT = Experiment(
    dict.fromkeys(("nt", "direct", "upa10", "auto"), SOURCES),
    "upa10",
    lists_of(SOURCES),
    (
        Claim("UPA has up to a hundred times less state than NT", "upa10", "nt", 40.0, LARGE, "state"),
        Claim(
            "UPA has up to a hundred times less state than DIRECT", "upa10", "direct", 40.0, LARGE, "state"
        ),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    return EXPERIMENT.run(options)
