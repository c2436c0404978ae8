"""CACQ's table 4 and figure 9: batches until the eddy has adapted to new queries and to a drift.

New queries: the paper's three workloads, five queries each, of which one comes every 50 batches. In the first
each speaks of one column; in the second all filters let a tenth pass and a serves five queries, b four, e
one; in the third they serve as many and differ in what they pass. What is watched is each filter's share of
the tickets. It has adapted when all shares have come within 0.05 of what they are in the end.

Drift: five queries that each conjoin all five columns; the filter on a ends nine rows in ten, that on e one
in ten. Then the values move until the filter on e ends nine in ten and that on a one. It has adapted when ten
batches in a row need, taken together, no more than 1.1 times the visits of the order that is best now.

In the paper a new filter has its share after about four seconds, and the most selective or most applied
filter most tickets. Here it agrees in that, but that in the first workload all five hold tickets by what they
end and not one of them nearly all. In batches of 8,192 rows it takes milliseconds.

Figures: `batches_to_adapt`, of the drift; `batches_to_adapt.<w1, w2, w3>`, after the last query came;
`ms_to_adapt`; `visits_per_tuple.<before, best, after>`.
"""

import argparse
import sys
import time

import numpy as np

from benchmarks.cacq import COLUMNS, Standing, Values, batch_of, uniform
from benchmarks.report import Figure, Plot, Report, Series
from engine.eddy.policies import FixedOrder, Tickets

WORKLOADS = {
    "w1": ["a > 30", "b > 50", "c > 10", "d > 40", "e > 90"],
    "w2": [" AND ".join(f"{name} > 90" for name in COLUMNS[: n + 1]) for n in range(5)],
    "w3": [
        " AND ".join(
            f"{name} > {limit}" for name, limit in zip(COLUMNS[: n + 1], (90, 70, 50, 30, 10), strict=False)
        )
        for n in range(5)
    ],
}
EVERY = 50
NEAR = 0.05
RUN = 10
DRIFTING = [
    f"a > {88 + n} AND b > {68 + n} AND c > {48 + n} AND d > {28 + n} AND e > {8 + n}" for n in range(5)
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--stable", type=int, default=200, help="batches before the drift (default: %(default)s)"
    )
    parser.add_argument("--watched", type=int, default=200, help="batches after it (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """The three workloads, then the drift."""
    figures: dict[str, Figure] = {}
    curves = []
    for name in WORKLOADS:
        rng = np.random.default_rng(options.seed)
        shares, adapted = watch(name, rng)
        figures[f"batches_to_adapt.{name}"] = adapted
        print(f"{name}: {adapted} batches after the last query", file=sys.stderr)
        if name == "w2":
            curves = [
                Series(f"filter on {c}", range(len(line)), line)
                for c, line in zip(COLUMNS, shares.T, strict=True)
            ]
    figures |= drift(options.stable, options.watched, np.random.default_rng(options.seed))
    print(f"drift: {figures['batches_to_adapt']} batches", file=sys.stderr)
    return Report(figures, Plot("batches; a query comes every 50", "share of tickets", curves))


def watch(name: str, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """(shares[batch, column], batches from the last query until all shares are what they stay)."""
    standing = Standing([], Tickets())
    lines = []
    for number in range(EVERY * 5 + 100):
        if number % EVERY == 0 and number < EVERY * 5:
            standing.add(WORKLOADS[name][number // EVERY])
        standing.route(batch_of(uniform(rng)))
        held = standing.tickets()
        lines.append([held.get(f"filter on {column}", 0.0) for column in COLUMNS])
    shares = np.array(lines)
    final = shares[-50:].mean(axis=0)
    far = np.abs(shares - final).max(axis=1) > NEAR
    last = 4 * EVERY
    return shares, int(np.flatnonzero(np.r_[True, far[last:]])[-1]) + 1


def drift(stable: int, watched: int, rng: np.random.Generator) -> dict[str, Figure]:
    """Visits before and after the columns change places. Raises RuntimeError if it never adapts."""
    standing = Standing(DRIFTING, Tickets())
    best = Standing(DRIFTING, FixedOrder([f"filter on {name}" for name in reversed(COLUMNS)]))
    before = [visits(standing, uniform(rng)) for _ in range(stable)]
    after, lowest, spent = [], [], []
    for _ in range(watched):
        values = drifted(uniform(rng))
        began = time.perf_counter()
        after.append(visits(standing, values))
        spent.append(time.perf_counter() - began)
        lowest.append(visits(best, values))
    for first in range(watched - RUN + 1):
        part = slice(first, first + RUN)
        if sum(after[part]) <= 1.1 * sum(lowest[part]):
            return {
                "batches_to_adapt": first,
                "ms_to_adapt": sum(spent[:first]) * 1e3,
                "visits_per_tuple.before": float(np.mean(before[-50:])),
                "visits_per_tuple.best": float(np.mean(lowest)),
                "visits_per_tuple.after": float(np.mean(after[first:])),
            }
    raise RuntimeError(f"not adapted after {watched} batches")


def drifted(values: Values) -> Values:
    """Values moved until each filter passes what the one opposite to it passed."""
    moved = np.array([80, 40, 0, -40, -80], np.int32)[:, None]
    return values + moved


def visits(standing: Standing, values: Values) -> float:
    """Rows given to filters, a row of the batch."""
    return sum(standing.route(batch_of(values)).given.values()) / values.shape[1]
