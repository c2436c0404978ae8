"""Filters whose drops are correlated: visits by routing policy, and what A-Greedy's profiles cost.

One query conjoins four functions of users, each of a column and with a share of the rows that it ends. At
first b ends few rows. Then the stream drifts: a ends half of all rows, and b those and three in ten of the
others; c and d end 28 and 25 in a hundred, independently. With a in front, b seems to end less than a does,
and with b in front a ends nothing; the best order has b first and a last. What a policy measures of the order
that it takes does not tell so.

The best fixed order is found by counting the rows of each of the 24 orders, and run through the engine as
well. Answers are compared with numpy. Sizes: `--stable` batches of 8,192 rows before the drift, `--watched`
after it; visits are those of the second half of these. `batches_to_adapt` are the batches after the drift
before ten in a row need, taken together, no more than 1.05 times the visits of the best order (`--watched`
if that never comes). `profile_share` is the part of A-Greedy's processor time that profiles take.

Figures: `visits_per_tuple.<a-greedy, tickets, random, optimal, fixed, best>` (`fixed`: the order that is best
before the drift, `best`: after it); `ratio_to_best`, of a-greedy; `batches_to_adapt`,
`batches_to_adapt.tickets`; `profile_share`, and `profile_share.short` where filters are arithmetic, so that a
visit is mostly calls: profiles then wait while they took more than their share.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt

from benchmarks.cacq import COLUMNS, Standing, Values, batch_of
from benchmarks.cacq_udf import chooser
from benchmarks.report import Figure, Report
from engine.eddy.choices import POLICIES
from engine.eddy.policies import FixedOrder, RoutingPolicy
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.batch import BATCH_ROWS_MAX

FILTERED = COLUMNS[:4]
LIMIT = 2**30
TURNS = 10
"""How often the loop in each function runs."""
FUNCTIONS = FunctionCatalogue(
    user_function(f"keeps_{name}", ["INTEGER"], "BOOLEAN", chooser(TURNS, LIMIT - 1), deterministic=True)
    for name in FILTERED
)
QUERY = " AND ".join(f"keeps_{name}({name})" for name in FILTERED)
SHORT = " AND ".join(f"{name} + 0 >= {LIMIT}" for name in FILTERED)
"""The filters of QUERY as arithmetic."""
BEFORE = (0.5, 0.1, 0.28, 0.25)
AFTER = (0.5, 0.65, 0.28, 0.25)
"""The share of rows that each column ends; a and b end the lowest of the same values."""

RUN = 10
NEAR = 1.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--stable", type=int, default=100, help="batches before the drift (default: %(default)s)"
    )
    parser.add_argument("--watched", type=int, default=200, help="batches after it (default: %(default)s)")
    parser.add_argument(
        "--short", type=int, default=2_000, help="batches through short filters (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """Each policy over the same rows."""
    best = {shares: best_order(shares, options.seed) for shares in (BEFORE, AFTER)}
    policies: dict[str, RoutingPolicy] = {name: make() for name, make in POLICIES.items()}
    policies["fixed"] = FixedOrder(best[BEFORE])
    policies["best"] = FixedOrder(best[AFTER])
    visits, figures = dict[str, npt.NDArray[np.int64]](), dict[str, Figure]()
    for name, policy in policies.items():
        visits[name], profile_share = routed(policy, options, QUERY, options.stable + options.watched)
        settled = visits[name][options.stable + options.watched // 2 :]
        figures[f"visits_per_tuple.{name}"] = settled.sum() / (len(settled) * BATCH_ROWS_MAX)
        print(f"{name}: {figures[f'visits_per_tuple.{name}']:.4f} visits a row", file=sys.stderr)
        if name == "a-greedy":
            figures["profile_share"] = profile_share
            _, short = routed(POLICIES[name](), options, SHORT, options.short)
            figures["profile_share.short"] = short
    after = {name: counts[options.stable :] for name, counts in visits.items()}
    figures["ratio_to_best"] = figures["visits_per_tuple.a-greedy"] / figures["visits_per_tuple.best"]
    figures["batches_to_adapt"] = batches_to_adapt(after["a-greedy"], after["best"])
    figures["batches_to_adapt.tickets"] = batches_to_adapt(after["tickets"], after["best"])
    return Report(figures)


def rows_of(rng: np.random.Generator, shares: Sequence[float], n: int = BATCH_ROWS_MAX) -> Values:
    """int32[5, n]: a value below LIMIT ends the row; a and b come of one number. e ends none."""
    drawn = rng.random((len(COLUMNS), n))
    drawn[1] = drawn[0]
    ends = drawn < np.array([*shares, 0.0])[:, None]
    values: Values = rng.integers(0, LIMIT, (len(COLUMNS), n), np.int32)
    values[~ends] += LIMIT
    return values


def best_order(shares: Sequence[float], seed: int) -> list[str]:
    """The names of filters in the order of fewest visits, of all orders."""
    passes = rows_of(np.random.default_rng(seed), shares, 100_000)[: len(FILTERED)] >= LIMIT

    def visits(order: Sequence[int]) -> int:
        left, count = np.ones(passes.shape[1], np.bool_), 0
        for place in order:
            count += int(np.count_nonzero(left))
            left &= passes[place]
        return count

    return [f"residual-{place + 1}" for place in min(permutations(range(len(FILTERED))), key=visits)]


def routed(
    policy: RoutingPolicy, options: argparse.Namespace, query: str, batches: int
) -> tuple[npt.NDArray[np.int64], float]:
    """(visits of each batch, share of processor time in profiles). Raises RuntimeError for a wrong answer."""
    standing = Standing([query], policy, timer=time.thread_time_ns, functions=FUNCTIONS)
    rng = np.random.default_rng(options.seed)
    visits, spent = [], 0
    for number in range(batches):
        values = rows_of(rng, BEFORE if number < options.stable else AFTER)
        batch = batch_of(values)
        began = time.thread_time_ns()
        result = standing.route(batch)
        if number:
            spent += time.thread_time_ns() - began
        visits.append(sum(result.given.values()))
        if not np.array_equal(standing.wants(result.bits, 0), (values[: len(FILTERED)] >= LIMIT).all(axis=0)):
            raise RuntimeError("the query is not what numpy says")
    return np.array(visits, np.int64), standing.stem.eddy.profile_cost / max(1, spent)


def batches_to_adapt(visits: npt.NDArray[np.int64], best: npt.NDArray[np.int64]) -> int:
    """Batches before a run that is as good as the best order; all of them if none is."""
    for start in range(len(visits) - RUN + 1):
        if visits[start : start + RUN].sum() <= NEAR * best[start : start + RUN].sum():
            return start
    return len(visits)
