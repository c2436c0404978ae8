"""Figure 9: query 1, ftp rows of two links joined on their source, by strategy and window.

The paper saw UPA nearly twice as fast as both others as the window grows, and DIRECT ahead of the negative
tuple approach (NT) by less and less, since the result that it scans is small.
"""

import argparse

from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import pairs
from benchmarks.pairs import lists_of
from benchmarks.report import Report
from benchmarks.update_patterns import add_arguments

__all__ = ["add_arguments", "run"]

LARGE = (50_000, 200_000)
EXPERIMENT = Experiment(
    dict.fromkeys(("nt", "direct", "upa10", "upa50", "auto"), pairs("ftp")),
    "upa10",
    lists_of("ftp"),
    (
        Claim("UPA is nearly twice as fast as NT on large windows", "upa10", "nt", 1.5, LARGE),
        Claim("UPA is nearly twice as fast as DIRECT on large windows", "upa10", "direct", 1.5, LARGE),
        Claim("DIRECT is ahead of NT", "direct", "nt"),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    return EXPERIMENT.run(options)
