"""Figure 12: query 2, distinct pairs of source and destination, by strategy and window.

The paper saw UPA about twice as fast as the negative tuple approach (NT), and DIRECT poor, since the result
is ten times that of figure 11 and the auxiliary state is larger, too. State is that of ``upa-fig14``.
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
        Claim("UPA is about twice as fast as NT", "upa10", "nt", 1.5),
        Claim("DIRECT is behind UPA where the result is large", "upa10", "direct", 2.0, LARGE),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    return EXPERIMENT.run(options)
