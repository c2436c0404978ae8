"""Operators that the figures have no query for, by strategy: group-by, intersection, union, table joins.

`group` counts the rows of link 1 by source and adds up their bytes, `intersect` is the sources of link 1 that
link 2 has, as often as both have them, `union` the rows of both. `table` joins link 1 with a table of the
sites that sources belong to, retroactively: a source that moves changes all its rows in the window; `nrr` is
the same without: a row keeps the site that its source had then. A source moves every 50 units.

By the paper's rules union and the join with a table that is not retroactive hand on the order of their
input and store nothing, so that all strategies are alike but for negative tuples; intersection stores both
inputs; a group's work is the same however its input expires; and a retroactive table makes negative tuples
whatever the strategy, so that DIRECT is refused.

Figures, each `.<operator>.<strategy>.w<units>`: `rows_per_s`, `us_per_1000`, `work_per_1000`, `state_bytes`;
and `ratio_to_nt.<operator>.w<units>`, of `upa10`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from benchmarks import sites
from benchmarks.connection_answers import Answers
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.update_patterns import LABELS, WINDOWS, Query, measure_all
from benchmarks.update_patterns import add_arguments as add_common

SUBJECT = "upa10"
STRATEGIES = ("nt", "direct", "upa10", "auto")


def _sited(table: str) -> Query:
    return Query(
        lambda window: (
            f"""SELECT a.src, a.dst, h.site FROM link1 {window} AS a
            JOIN {table} AS h ON a.src = h.src"""
        ),
        (0,),
        lambda answers, unit: answers.rows_of(0, unit),
        table,
    )


OPERATORS: Mapping[str, Query] = {
    "group": Query(
        lambda window: f"""SELECT src, COUNT(*) AS n, SUM(bytes) AS total FROM link1 {window} GROUP BY src""",
        (0,),
        Answers.sources,
    ),
    "intersect": Query(
        lambda window: f"SELECT src FROM link1 {window} INTERSECT ALL SELECT src FROM link2 {window}",
        (0, 1),
        lambda answers, unit: np.minimum(answers.rows_of(0, unit), answers.rows_of(1, unit)),
    ),
    "union": Query(
        lambda window: f"SELECT src, dst FROM link1 {window} UNION ALL SELECT src, dst FROM link2 {window}",
        (0, 1),
        lambda answers, unit: answers.rows_of(0, unit) + answers.rows_of(1, unit),
    ),
    "table": _sited(sites.RETROACTIVE),
    "nrr": _sited(sites.NON_RETROACTIVE),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    add_common(parser)
    parser.set_defaults(windows=[WINDOWS[0], WINDOWS[3], WINDOWS[-1]])
    parser.add_argument("--operators", nargs="+", choices=OPERATORS, default=list(OPERATORS))


def run(options: argparse.Namespace) -> Report:
    """Each operator by each strategy over all windows."""
    figures: dict[str, Figure] = {}
    plots: list[Plot] = []
    for operator in options.operators:
        print(f"{operator}:")
        points = measure_all(dict.fromkeys(STRATEGIES, OPERATORS[operator]), options)
        for strategy, over in points.items():
            for window, point in over.items():
                at = f"{operator}.{strategy}.w{window}"
                figures[f"rows_per_s.{at}"] = point.rows_per_s
                figures[f"us_per_1000.{at}"] = point.us_per_1000
                figures[f"work_per_1000.{at}"] = point.work.total
                figures[f"state_bytes.{at}"] = point.state_bytes
        for window, point in points.get(SUBJECT, {}).items():
            if window in points.get("nt", {}):
                ratio = point.rows_per_s / points["nt"][window].rows_per_s
                figures[f"ratio_to_nt.{operator}.w{window}"] = ratio
        lines = [
            Series(LABELS[strategy], list(over), [point.us_per_1000 for point in over.values()])
            for strategy, over in points.items()
        ]
        plots.append(Plot("window, units", f"{operator}: us per 1,000 rows", lines, log=True))
    return Report(figures, plots)
