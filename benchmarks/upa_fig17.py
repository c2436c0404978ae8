"""Figure 17: query 5, link 1 minus link 2 joined with ftp of link 3, by plan and window.

The paper saw three plans: the negative tuple approach with the join first (NT) and with the negation first
(NT, join up), which is ahead of it, since the negation is more selective, and best on small windows; and UPA
with the join first, whose join sends no negative tuples, best on large windows.

The two plans are not equal where rows are repeated: a negation above the join that counts the join's rows
gives more. `composites.w<units>` and `answer.w<units>` say how many, by numpy. So the plans are compared
where they are equal, with the negation as sets: rows of link 1 whose source link 2 has not at all (NOT
EXISTS). The bag difference (EXCEPT ALL ON) stays below the join; the strategies for that plan are `bag_nt`
(all exits as negative tuples), `bag_partitioned` and `bag_indexed` (partitions above the negation, without
and with an index of their entries), figures of their own.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks import linked_lists
from benchmarks.connection_answers import Answers, Counts, negation_exits
from benchmarks.connections import Connections
from benchmarks.experiment import Claim, Experiment
from benchmarks.link_queries import ABSENT_JOINED, JOINED_ABSENT, NEGATION, NEGATION_JOINED, SOURCES
from benchmarks.linked_lists import Size
from benchmarks.report import Figure, Report
from benchmarks.update_patterns import Point, add_arguments

__all__ = ["add_arguments", "run"]

SMALL, LARGE = (2_000, 5_000), (50_000, 200_000)
NEGATION_FIRST = ("ntjoinup", "bag_nt", "bag_partitioned", "bag_indexed")


def lists(strategy: str, rows: Connections, window: int, point: Point) -> float:
    """Per 1,000 rows of the three links."""
    is_negation_first = strategy in NEGATION_FIRST
    assert NEGATION.answer is not None
    assert SOURCES.answer is not None
    assert NEGATION_JOINED.answer is not None
    rest, values = Size.of(NEGATION.answer, rows, window), Size.of(SOURCES.answer, rows, window).rows
    answer = Size.of(NEGATION_JOINED.answer, rows, window)
    pairs = Size.of(Answers.joined, rows, window)
    premature = negation_exits(rows, window, window, min(len(rows), 2 * window)).premature
    ftp = float(rows.of("ftp")[2].mean())
    strategy = strategy.removeprefix("bag_")
    counters = linked_lists.negation(strategy, (1, 1), (window, window), (values, values))
    came = 3 * point.came
    shown = linked_lists.strict_view("nt", 0, came, answer.rows, answer.keys, premature)
    if is_negation_first:
        joined = linked_lists.join("nt", (rest.rows / window, ftp), (rest.rows, ftp * window))
    else:
        joined = linked_lists.join(strategy, (1, ftp), (window, ftp * window))
        joined += linked_lists.view(strategy, 1 + ftp, pairs.rows / window, pairs.rows, pairs.keys)
    return 1_000 / 3 * (linked_lists.windows(strategy, 3) + counters + joined + shown)


EXPERIMENT = Experiment(
    {
        "nt": JOINED_ABSENT,
        "ntjoinup": ABSENT_JOINED,
        "upa10": JOINED_ABSENT,
        "auto": JOINED_ABSENT,
        "bag_nt": NEGATION_JOINED,
        "bag_partitioned": NEGATION_JOINED,
        "bag_indexed": NEGATION_JOINED,
    },
    "auto",
    lists,
    (
        Claim("NT with the negation first is ahead of NT with the join first", "ntjoinup", "nt"),
        Claim("NT with the negation first is best on small windows", "ntjoinup", "upa10", 1.0, SMALL),
        Claim("UPA with the join first is best on large windows", "upa10", "ntjoinup", 1.0, LARGE),
    ),
)


def run(options: argparse.Namespace) -> Report:
    """All plans over all windows."""
    sizes: dict[str, Figure] = {}

    def note(window: int, rows: Connections) -> None:
        answers = Answers.of(rows, window)
        units = np.linspace(window, len(rows) - 1, 10).astype(int).tolist()

        def average(of: Callable[[Answers, int], Counts]) -> float:
            return float(np.mean([of(answers, unit).sum() for unit in units]))

        sizes[f"answer.w{window}"] = average(Answers.negation_joined)
        sizes[f"composites.w{window}"] = average(Answers.composites_left)

    report = EXPERIMENT.run(options, note)
    return replace(report, figures={**report.figures, **sizes})
