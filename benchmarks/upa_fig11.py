"""Figure 11: query 2, the distinct sources of a link, by strategy and window.

The paper saw UPA ten times as fast as both others: delta* looks at the few rows of its output alone, and does
not store its input. State is that of ``upa-fig13``.
"""

import argparse

from benchmarks.distincts import lists_of
from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import SOURCES
from benchmarks.report import Report
from benchmarks.update_patterns import add_arguments

__all__ = ["add_arguments", "run"]

EXPERIMENT = Experiment(
    dict.fromkeys(("nt", "direct", "upa10", "auto"), SOURCES),
    "upa10",
    lists_of(SOURCES),
    (
        Claim("UPA is ten times as fast as NT", "upa10", "nt", 8.0),
        Claim("UPA is ten times as fast as DIRECT", "upa10", "direct", 8.0),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    return EXPERIMENT.run(options)
