"""Figure 16: query 4, the distinct sources of two links joined, by strategy and window.

The paper saw UPA first and DIRECT last, and the state of UPA up to a hundred times smaller: what delta* keeps
is what the join reads.
"""

import argparse

from benchmarks import linked_lists
from benchmarks.connections import Connections
from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import COMMON, SOURCES
from benchmarks.linked_lists import Size
from benchmarks.report import Report
from benchmarks.update_patterns import Point, add_arguments

__all__ = ["add_arguments", "run"]

LARGE = (50_000, 200_000)


def lists(strategy: str, rows: Connections, window: int, point: Point) -> float:
    """Per 1,000 rows of both links."""
    assert COMMON.answer is not None
    assert SOURCES.answer is not None
    size, values = Size.of(COMMON.answer, rows, window).rows, Size.of(SOURCES.answer, rows, window).rows
    came = values / window
    a_unit = (
        linked_lists.windows(strategy, 2)
        + 2 * linked_lists.distinct(strategy, 1, window, values, came)
        + linked_lists.join(strategy, (came, came), (values, values))
        + linked_lists.view(strategy, 2 * came, 2 * point.came, size, size)
    )
    return 1_000 / 2 * a_unit


EXPERIMENT = Experiment(
    dict.fromkeys(("nt", "direct", "upa10", "auto"), COMMON),
    "upa10",
    lists,
    (
        Claim("UPA is ahead of NT", "upa10", "nt", 1.5),
        Claim("DIRECT is behind NT on large windows", "nt", "direct", 1.0, LARGE),
        Claim("UPA has up to a hundred times less state than NT", "upa10", "nt", 40.0, LARGE, "state"),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    return EXPERIMENT.run(options)
