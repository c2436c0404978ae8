"""CACQ's figure 11b: users' functions before a join and after it, and among themselves.

100 standing queries of one `Engine` choose quotes by a function of their own, each of another cost, and join
them with the 1, 10 and 100 articles a stock that there are. An update brings quotes; then each query's answer
is taken, the articles of the quotes that it chose. Plans are policies of the engine, the ``placement`` of its
join, and answers are compared:

    push-down  functions are called as quotes come, once for each; what no query chose meets no article
    pull-up    all quotes meet articles, then functions are called for those that have one
    CACQ       (``eddy``) function by function the one or the other, by what was measured
    per tuple  a text whose functions have an argument of both sides, so that they are called for each tuple

In the paper pull-up takes longer by the number of articles, up to a hundred times; at one article it is
slower too, since joined tuples are larger. Here that is what a plan does which calls functions for each
tuple. Pull-up as a policy does not: lineage is kept by quote, so that a function is called once for each
quote that has an article, however many it has.

Beside it, not of the paper: one stock in ten has an article (`sparse`), and half the queries look for
articles that few stocks have, the others for those that all have (`mixed`), so that neither plan is right for
all functions.

Among themselves: one query conjoins five functions, of which the dear ones pass most and the cheap few. The
eddy orders them by what was measured. Figures with `order` tell nanoseconds a row by policy.

Times are computing time of the thread, so that what else runs on the machine is not in them. Figures, by what
there is of articles (`a<articles>`, `sparse`, `mixed`): `ms_per_update.<plan>.<articles>`, of `cacq`,
`push_down`, `pull_up`, `per_tuple`; `ratio_to_<plan>.<articles>`, how many times faster CACQ is than that;
`calls_per_quote.<plan>.<articles>`, of functions, for each query. Of the order:
`order_ns_per_row.<tickets, random, worst, optimal>`.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.cacq import Standing
from benchmarks.cacq_niagara import CREATE, SYMBOLS, quotes
from benchmarks.cacq_table3 import SYSTEMS
from benchmarks.numbers import Numbers
from benchmarks.psoup import register
from benchmarks.report import Figure, Plot, Report, Series
from engine.engine import Engine
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import DOUBLE, INTEGER, TIMESTAMP, Type
from engine.model.user_calls import FunctionMeter

Ints = npt.NDArray[np.int64]

WARM_UP = 4
"""Updates before those that count: the first two bring what is not yet seen, then functions are measured."""

SPARSE = 10
"""One stock in so many has an article, where few have."""

TURNS_MIN, TURNS_MAX = 100, 5_000
"""Least and most turns of a loop in a query's function: the paper's functions take 10 to 500 microseconds,
these about a tenth of that.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--articles", action=Numbers, nargs="+", default=[1, 10, 100], help="a stock (default: %(default)s)"
    )
    parser.add_argument("--queries", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--quotes", type=int, default=20, help="an update (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=9, help="(default: %(default)s)")
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


@dataclass(frozen=True, slots=True)
class Articles:
    """The stock of each article; rare: of those that every second query looks for instead, if any."""

    symbols: npt.NDArray[np.int32]
    rare: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))


class Plan:
    """An engine with standing queries and all articles. calls: of functions, in all."""

    def __init__(
        self,
        turns: npt.NDArray[np.int64],
        lows: npt.NDArray[np.float64],
        articles: Articles,
        quotes_each: int,
        plan: str,
    ) -> None:
        """turns, lows: of each query's function. plan: one of PLANS."""
        symbols, rare = articles.symbols, articles.rare
        catalogue = FunctionCatalogue(
            user_function(
                f"f{n}",
                ["DOUBLE"],
                "BOOLEAN",
                chooser(int(each), low),
                deterministic=True,
                meter=FunctionMeter(time.perf_counter_ns),
            )
            for n, (each, low) in enumerate(zip(turns, lows, strict=True))
        )
        self._functions = catalogue.users
        self._queries = len(turns)
        self.engine = Engine(functions=catalogue, timer=time.perf_counter_ns, clock=time.thread_time_ns)
        for name, column in (
            ("stocks", "price DOUBLE NOT NULL"),
            ("articles", "id INTEGER NOT NULL"),
            ("rare", "id INTEGER NOT NULL"),
        ):
            self.engine.create(
                f"CREATE STREAM {name} (symbol INTEGER NOT NULL, {column}, ts TIMESTAMP NOT NULL) "
                f"WITH (topic='{name}', timestamp='ts') RETAIN 1 DAYS"
            )
        self._articles = dict.fromkeys(("articles", "rare"), 0)
        for name, published in (("articles", symbols), ("rare", rare)):
            for first in range(0, len(published), BATCH_ROWS_MAX):
                self._publish(name, published[first : first + BATCH_ROWS_MAX], 0)
        joined = ["rare" if len(rare) and n % 2 else "articles" for n in range(self._queries)]
        placement, argument = PLANS[plan]
        texts = (
            f"SELECT s.symbol, s.price, a.id FROM stocks [ROWS {quotes_each}] s "
            f"JOIN {name} [ROWS {2 * len(symbols)}] a ON s.symbol = a.symbol WHERE f{n}({argument})"
            for n, name in enumerate(joined)
        )
        register(self.engine, texts)
        for module in self.engine.modules():
            if module.startswith("join/"):
                self.engine.set_attribute(module, "placement", placement)

    def _publish(self, name: str, symbols: npt.NDArray[np.int32], instant_ms: int) -> None:
        n = len(symbols)
        ids = np.arange(self._articles[name], self._articles[name] + n)
        self._articles[name] += n
        columns = (Column(INTEGER, symbols), Column(INTEGER, ids.astype(np.int32)))
        self._ingest(name, INTEGER, columns, ids, instant_ms)

    def _ingest(
        self, name: str, type_: Type, columns: tuple[Column, Column], numbers: Ints, instant_ms: int
    ) -> None:
        times = np.full(len(numbers), instant_ms, np.int64)
        second = "price" if name == "stocks" else "id"
        fields = (Field("symbol", INTEGER, nullable=False), Field(second, type_, nullable=False))
        schema = Schema((*fields, Field("ts", TIMESTAMP, nullable=False)))
        batch = Batch(
            schema, (*columns, Column(TIMESTAMP, times)), np.zeros(len(times), np.int32), numbers, times
        )
        self.engine.ingest(name, batch, instant_ms)

    def update(self, number: int, stocks: Batch) -> list[pa.Table]:
        """Quotes come, by which those of the update before are seen; the answers of all queries to them."""
        offsets = np.arange(number * len(stocks), (number + 1) * len(stocks))
        for name in ("articles", "rare"):
            self._publish(name, np.full(1, -1, np.int32), number)
        symbol, price = stocks.columns[:2]
        self._ingest("stocks", DOUBLE, (symbol, price), offsets, number)
        view = self.engine.view()
        return [view.snapshot(f"q{n}").table for n in range(self._queries)]

    @property
    def calls(self) -> int:
        """Rows that functions were called for."""
        return sum(one.meter.rows for one in self._functions)


PLANS = {
    "cacq": ("eddy", "s.price"),
    "push_down": ("push-down", "s.price"),
    "pull_up": ("pull-up", "s.price"),
    "per_tuple": ("push-down", "CASE WHEN a.id >= 0 THEN s.price END"),
}
"""The placement of the join, and the argument of functions."""

LABELS = {"cacq": "CACQ", "push_down": "push-down", "pull_up": "pull-up", "per_tuple": "pull-up per tuple"}


def compared(
    options: argparse.Namespace, articles: Articles, rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, float]]:
    """(ms an update, calls for each quote and query) by plan. Raises RuntimeError where answers differ."""
    turns = rng.integers(TURNS_MIN, TURNS_MAX, options.queries)
    lows = 100 * rng.random(options.queries)
    plans = {name: Plan(turns, lows, articles, options.quotes, name) for name in PLANS}
    spent: dict[str, list[float]] = {name: [] for name in plans}
    before: dict[str, int] = {}
    for number in range(1, options.updates + WARM_UP + 1):
        stocks = quotes(rng, options.quotes)
        found = {}
        if number == WARM_UP + 1:
            before = {name: plan.calls for name, plan in plans.items()}
        for name in rng.permutation(list(plans)).tolist():
            began = time.thread_time()
            found[name] = plans[name].update(number, stocks)
            spent[name].append(time.thread_time() - began)
        for name in plans:
            for mine, theirs in zip(found["cacq"], found[name], strict=True):
                order = [(column, "ascending") for column in mine.column_names]
                if mine.sort_by(order) != theirs.sort_by(order):
                    raise RuntimeError("the plans have not the same answers")
    calls = options.updates * options.quotes * options.queries
    return (
        {name: 1e3 * median(times[WARM_UP:]) for name, times in spent.items()},
        {name: (plan.calls - before[name]) / calls for name, plan in plans.items()},
    )


def run(options: argparse.Namespace) -> Report:
    """Before and after the join; then the order."""
    rng = np.random.default_rng(options.seed)
    figures: dict[str, Figure] = {}
    points: dict[str, list[float]] = {plan: [] for plan in PLANS}
    every = np.arange(SYMBOLS, dtype=np.int32)
    worlds = {f"a{number}": Articles(np.repeat(every, number)) for number in options.articles}
    worlds["sparse"] = Articles(every[::SPARSE])
    worlds["mixed"] = Articles(every, every[::SPARSE])
    for label, articles in worlds.items():
        spent, calls = compared(options, articles, rng)
        for plan, each in spent.items():
            figures[f"ms_per_update.{plan}.{label}"] = each
            figures[f"calls_per_quote.{plan}.{label}"] = calls[plan]
            if label.startswith("a"):
                points[plan].append(each)
            if plan != "cacq":
                figures[f"ratio_to_{plan}.{label}"] = each / spent["cacq"]
        print(
            f"{label}: " + ", ".join(f"{LABELS[p]} {ms:.2f} ms" for p, ms in spent.items()), file=sys.stderr
        )
    batches = [quotes(rng) for _ in range(8)]
    for name, policy in SYSTEMS.items():
        figures[f"order_ns_per_row.{name}"] = order(policy, batches, options.batches)
    curves = [Series(LABELS[plan], options.articles, line) for plan, line in points.items()]
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
