"""CACQ's figure 11b: users' functions before a join and after it, and among themselves.

100 queries choose quotes by a function of their own, each of another cost, and join them with 1, 10 and 100
articles a stock, as in `cacq-niagara`. CACQ's eddy takes quotes through the functions, and to the articles
those that someone wants; pull-up, which shares one join among all queries, must call functions on what was
joined.

In the paper pull-up takes longer by the number of articles, up to a hundred times; at one article it is
slower too, since joined tuples are larger. Here it agrees on the first; at one article the two are alike.

Among themselves: one query conjoins five functions, of which the dear ones pass most and the cheap few. The
eddy orders them by what was measured. Figures with `order` tell nanoseconds a row by policy.

Figures: `ms_per_update.<cacq, pull_up>.a<articles>`; `ratio_to_pull_up.a<articles>`, how many times
faster CACQ is; `order_ns_per_row.<tickets, random, worst, optimal>`.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.cacq import Standing
from benchmarks.cacq_niagara import CREATE, SYMBOLS, Articles, Plans, measure, quotes
from benchmarks.cacq_table3 import SYSTEMS
from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.batch import Batch

TURNS_MIN, TURNS_MAX = 10, 500
"""Least and most turns of a loop in a function: the paper's functions take 10 to 500 microseconds, these a
fiftieth of that.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--articles", action=Numbers, nargs="+", default=[1, 10, 100], help="a stock (default: %(default)s)"
    )
    parser.add_argument("--queries", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--quotes", type=int, default=20, help="an update (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument(
        "--batches", type=int, default=60, help="of the five functions (default: %(default)s)"
    )


def chooser(turns: int, low: float) -> Callable[[float], bool]:
    """A function that takes its time and lets prices above `low` pass."""

    def choose(price: float) -> bool:
        for _ in range(turns):
            pass
        return price > low

    return choose


def run(options: argparse.Namespace) -> Report:
    """Before and after the join; then the order."""
    rng = np.random.default_rng(options.seed)
    turns = rng.integers(TURNS_MIN, TURNS_MAX, options.queries)
    functions = FunctionCatalogue(
        user_function(f"f{n}", ["DOUBLE"], "BOOLEAN", chooser(int(each), low), deterministic=True)
        for n, (each, low) in enumerate(zip(turns, 100 * rng.random(options.queries), strict=True))
    )
    texts = [f"f{n}(price)" for n in range(options.queries)]
    figures: dict[str, Figure] = {}
    points: dict[str, list[float]] = {"cacq": [], "pull_up": []}
    for number in options.articles:
        articles = Articles(np.repeat(np.arange(SYMBOLS), number))
        plans = Plans(texts, articles, functions)
        updates = [quotes(rng, options.quotes) for _ in range(options.updates)]
        seconds, _ = measure(plans, updates, rng, ("cacq", "pull_up"))
        for plan, each in seconds.items():
            figures[f"ms_per_update.{plan}.a{number}"] = each * 1e3
            points[plan].append(each * 1e3)
        figures[f"ratio_to_pull_up.a{number}"] = seconds["pull_up"] / seconds["cacq"]
        print(
            f"{number}: CACQ {seconds['cacq'] * 1e3:.2f} ms, pull-up {seconds['pull_up'] * 1e3:.2f} ms",
            file=sys.stderr,
        )
    batches = [quotes(rng) for _ in range(8)]
    for name, policy in SYSTEMS.items():
        figures[f"order_ns_per_row.{name}"] = order(policy, batches, options.batches)
    labels = {"cacq": "CACQ", "pull_up": "pull-up"}
    curves = [Series(labels[plan], options.articles, line) for plan, line in points.items()]
    return Report(figures, Plot("articles a stock", "ms an update", curves, log=True))


def order(policy: Callable[[], object], batches: list[Batch], times: int) -> float:
    """Nanoseconds a row of five functions in one query. Raises RuntimeError for a wrong answer."""
    functions = FunctionCatalogue(
        user_function(f"g{n}", ["DOUBLE"], "BOOLEAN", chooser(turns, low), deterministic=True)
        for n, (turns, low) in enumerate([(400, 5.0), (200, 20.0), (100, 50.0), (40, 70.0), (20, 90.0)])
    )
    text = " AND ".join(f"g{n}(price)" for n in range(5))
    standing = Standing([text], policy(), timer=time.perf_counter_ns, functions=functions, create=CREATE)
    spent = 0
    for number in range(2 * times):
        batch = batches[number % len(batches)]
        began = time.thread_time_ns()
        bits = standing.match(batch)
        if number >= times:
            spent += time.thread_time_ns() - began
        if not np.array_equal(standing.wants(bits, 0), batch.columns[1].values > 90.0):
            raise RuntimeError("not the rows that all five functions choose")
    return spent / (times * len(batches[0]))
