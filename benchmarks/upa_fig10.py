"""Figure 10: query 1 with telnet, whose result is ten times as large, by strategy and window.

The paper saw DIRECT by far the last, since it scans the large result; UPA with ten partitions good at first,
then slow; with fifty up to ten times as fast as the negative tuple approach (NT) on large windows.
"""

import argparse

from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import pairs
from benchmarks.pairs import lists_of
from benchmarks.report import Report
from benchmarks.update_patterns import add_arguments

__all__ = ["add_arguments", "run"]

SMALL, LARGE = (2_000, 10_000), (50_000, 200_000)
EXPERIMENT = Experiment(
    dict.fromkeys(("nt", "direct", "upa10", "upa50", "auto"), pairs("telnet")),
    "upa50",
    lists_of("telnet"),
    (
        Claim("DIRECT is far behind NT", "nt", "direct", 2.0),
        Claim("UPA(10) is ahead of NT on small windows", "upa10", "nt", 1.0, SMALL),
        Claim("UPA(10) becomes slow on large windows: UPA(50) is ahead", "upa50", "upa10", 1.5, LARGE),
        Claim("UPA(50) is up to ten times as fast as NT on large windows", "upa50", "nt", 3.0, LARGE),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    return EXPERIMENT.run(options)
