"""Figure 15: query 3, link 1 minus link 2 on the source, by strategy and window.

The paper saw partitions searched by negative tuples slightly ahead of the negative tuple approach (NT) for
windows to 10,000 units, and behind it beyond, where the result and so the search is large; 40% of the rows
left the answer before their time.

`premature.w<units>`: the share of those in all rows that leave the answer, counted by numpy.
"""

import argparse
from dataclasses import replace

from benchmarks import linked_lists
from benchmarks.connection_answers import negation_exits
from benchmarks.connections import Connections
from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import NEGATION, SOURCES
from benchmarks.linked_lists import Size
from benchmarks.report import Figure, Report
from benchmarks.update_patterns import Point, add_arguments

__all__ = ["add_arguments", "run"]

SMALL, LARGE = (2_000, 10_000), (20_000, 200_000)


def lists(strategy: str, rows: Connections, window: int, point: Point) -> float:
    """Per 1,000 rows of both links."""
    assert NEGATION.answer is not None
    assert SOURCES.answer is not None
    size, values = Size.of(NEGATION.answer, rows, window), Size.of(SOURCES.answer, rows, window).rows
    premature = negation_exits(rows, window, window, min(len(rows), 2 * window)).premature
    a_unit = (
        linked_lists.windows(strategy, 2)
        + linked_lists.negation(strategy, (1, 1), (window, window), (values, values))
        + linked_lists.strict_view(strategy, 2, 2 * point.came, size.rows, size.keys, premature)
    )
    return 1_000 / 2 * a_unit


EXPERIMENT = Experiment(
    dict.fromkeys(("nt", "partitioned", "negative", "indexed", "auto"), NEGATION),
    "auto",
    lists,
    (
        Claim("partitions are slightly ahead of NT on small windows", "partitioned", "nt", 1.0, SMALL),
        Claim("NT is ahead of partitions on large windows", "nt", "partitioned", 1.0, LARGE),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All strategies over all windows."""
    shares: dict[str, Figure] = {}

    def note(window: int, rows: Connections) -> None:
        share = negation_exits(rows, window, window, len(rows)).premature
        shares[f"premature.w{window}"] = share
        verdict = "agrees" if 0.3 <= share <= 0.5 else "does not agree"
        print(f"{verdict}: about 40% of the rows leave before their time; {share:.0%} at {window:,}")

    report = EXPERIMENT.run(options, note)
    return replace(report, figures={**report.figures, **shares})
