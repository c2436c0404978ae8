"""Figure 15: many selections over one stream: how much of its answer a query finds.

100 queries, each an interval of item ids that takes 5% to 10% of the rows of one store, at gaps of 10 to 100
units; then 20 to 200 queries at a gap of 100. SIMPLE selection feeds the stream to each query apart, 1.25
units for a row and a query. Promising tuples visit the cells of a summary with ordered buckets that a query
wants, and are charged the same for each row and query; the grouped filter of the engine, which meets a row
once for all queries, is not credited.

The paper saw up to 33% more at a gap of 100, on an axis of 25 to 75%, and promising tuples ahead beyond 80
queries, on an axis of 40 to 100%. What must hold: at least 1.5 times SIMPLE's at 200 queries.

Figures: `pct_of_exact.<line>.gap<G>` and `pct_of_exact.<line>.q<N>` for `pt` and `simple`, the mean over the
queries.
"""

from __future__ import annotations

import argparse
from statistics import median

from benchmarks.numbers import Numbers
from benchmarks.report import Report
from benchmarks.stores import runs
from benchmarks.stores.intervals import draw_intervals, pct_of_answers, simple
from benchmarks.stores.runs import Claim, Measure, Points
from benchmarks.stores.selecting import Selecting
from benchmarks.stores.structures import costs_of

QUERIES, GAP = 100, 100
NUMBERS = list(range(20, 201, 20))
STEP_MS = 500
CLAIM = Claim("PT finds 1.5 times SIMPLE's at 200 queries", "q", "pt", "simple", 1.5, (200, 200))
AXES = {"gap": (25, 75), "q": (40, 100)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that all figures over the stores have, and the numbers of queries."""
    runs.add_arguments(parser, seconds=120)
    parser.add_argument(
        "--queries", action=Numbers, nargs="+", default=NUMBERS, help="(default: %(default)s)"
    )
    parser.set_defaults(step_ms=STEP_MS)


def run(options: argparse.Namespace) -> Report:
    """Both lines at all gaps, then at all numbers of queries."""
    by_gap = {gap: measure(options, gap, QUERIES) for gap in options.gaps}
    by_number = {queries: measure(options, GAP, queries) for queries in options.queries}
    points: Points = {
        key: {line: {place: of[line] for place, of in by.items()} for line in ("pt", "simple")}
        for key, by in (("gap", by_gap), ("q", by_number))
    }
    measures = {key: Measure(lambda *_: 0.0, "% of the exact output", axis) for key, axis in AXES.items()}
    runs.table({"gap": points["gap"]})
    runs.table({"q": points["q"]}, "queries")
    runs.print_verdicts(
        [Claim("PT finds 1.5 times SIMPLE's at 200 queries", "q", "pt", "simple", 1.5, (200, 200))], points
    )
    ahead = [queries for queries, of in by_number.items() if of["pt"] > of["simple"]]
    print(f"PT is ahead at {', '.join(map(str, ahead)) or 'no number of'} queries; the paper's beyond 80")
    runs.shape(points, measures)
    gaps = runs.report({"pct_of_exact": points["gap"]}, {"pct_of_exact": measures["gap"]})
    numbers = runs.report({"pct_of_exact": points["q"]}, {"pct_of_exact": measures["q"]}, "queries", "q")
    return Report({**gaps.figures, **numbers.figures}, [*runs.plots_of(gaps), *runs.plots_of(numbers)])


def measure(options: argparse.Namespace, gap: int, queries: int) -> dict[str, float]:
    """By line: percent of the answers found, the median over the seeds."""
    costs = costs_of(options)
    found: dict[str, list[float]] = {"pt": [], "simple": []}
    for seed in runs.seeds(options):
        rows = runs.rows_of(options, seed, gap).of(0)
        intervals = draw_intervals(seed, rows, queries)
        wanted = intervals.wants(rows)
        seen = Selecting(costs=costs, step_ms=options.step_ms).run(rows, intervals)
        if (seen.found & ~wanted).any():
            raise RuntimeError("a row was found that no exact answer has")
        found["pt"].append(pct_of_answers(seen.found, wanted))
        found["simple"].append(pct_of_answers(simple(rows, queries, costs.evaluation), wanted))
    told = {line: median(values) for line, values in found.items()}
    print(f"gap {gap}, {queries} queries: PT {told['pt']:.1f}%, SIMPLE {told['simple']:.1f}%")
    return told
