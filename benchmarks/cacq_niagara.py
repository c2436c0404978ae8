"""CACQ's figure 11a: queries that filter a stream and join it, beside NiagaraCQ's two plans for them.

    SELECT * FROM stocks s, articles a WHERE s.price > x AND s.symbol = a.symbol

with another x each. 2,250 stocks, an article for each (`--articles` for more), prices uniform in 0..100; the
least x is 0, so that some query wants any quote. Prices are updated `--updates` times; a plan's time is that
of an update. All plans are made of the same parts, the engine's Query SteM over price and one index of the
articles by symbol:

    CACQ       the eddy takes a batch to filter and index in the order it measured, rows with their lineage
    push-down  one filter for all queries, then a join for each query on its own
    pull-up    one join of all rows, then one filter for all queries over what was joined

In the paper push-down is slowest in all cases; CACQ is faster than pull-up for few queries, since it filters
smaller tuples, fewer of them, and becomes slightly slower for many, since it keeps lineage.

Here it agrees that push-down falls behind with the number of queries, by an order and more at 200, and that
the other two lie close together. It does not agree that CACQ is ahead for few queries: a row is a few numbers
in columns, joined or not, and an update is over in a fraction of a millisecond, of which calls take most.

Figures: `ms_per_update.<cacq, push_down, pull_up>.q<queries>`; `tuples_per_update.q<queries>`, handed to
queries.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks.cacq import Standing
from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series
from engine.eddy.policies import RoutingPolicy, Tickets, Visit
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import DOUBLE, INTEGER

SYMBOLS = 2_250
SCHEMA = Schema((Field("symbol", INTEGER, nullable=False), Field("price", DOUBLE, nullable=False)))
CREATE = "CREATE STREAM stocks (symbol INTEGER NOT NULL, price DOUBLE NOT NULL) WITH (topic='stocks')"
LABELS = {"cacq": "CACQ", "push_down": "push-down", "pull_up": "pull-up"}

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries",
        action=Numbers,
        nargs="+",
        default=[1, 5, 20, 50, 100, 200],
        help="(default: %(default)s)",
    )
    parser.add_argument("--updates", type=int, default=60, help="of all prices (default: %(default)s)")
    parser.add_argument("--articles", type=int, default=1, help="a stock (default: %(default)s)")


class Articles:
    """A SteM of the articles by symbol s: the places of its articles are order[starts[s] : starts[s + 1]]."""

    def __init__(self, symbols: Ints) -> None:
        self.order = np.argsort(symbols, kind="stable")
        self.starts = np.searchsorted(symbols[self.order], np.arange(SYMBOLS + 1))

    def probe(self, symbols: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
        """(row, article) of each pair."""
        first = self.starts[symbols]
        counts = self.starts[symbols + 1] - first
        rows = np.repeat(np.arange(len(symbols)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, self.order[np.repeat(first, counts) + within]


@dataclass(frozen=True, slots=True)
class Stop:
    """What the policy knows of filter and index."""

    name: str
    queries: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Tuples of one update: stock, article, and who wants them. bits: uint64[words, tuples]."""

    stocks: Ints
    articles: Ints
    bits: Words


class Plans:
    """The three plans over the same queries and articles."""

    def __init__(self, texts: list[str], articles: Articles) -> None:
        self.articles = articles
        self.filters = {
            plan: Standing(
                texts,
                grouped_filters="auto",
                timer=time.perf_counter_ns,
                create=CREATE,
            )
            for plan in LABELS
        }
        self.policy: RoutingPolicy = Tickets()
        self._stops = (Stop("filter", len(texts)), Stop("articles", len(texts)))
        self.queries = len(texts)

    def cacq(self, stocks: Batch) -> Joined:
        """Filter and index in the order that the policy chooses."""
        self.policy.begin()
        first = self.policy.choose(self._stops)
        began = time.perf_counter_ns()
        if first.name == "filter":
            bits, wanted = self._filter(first, stocks)
            found, articles = self._probe(self._stops[1], stocks, wanted)
            return Joined(wanted[found], articles, bits[:, found])
        rows, articles = self.articles.probe(stocks.columns[0].values)
        spent = time.perf_counter_ns() - began
        self.policy.observe(first, Visit(len(stocks), len(rows), 0, float(spent)))
        bits, wanted = self._filter(self._stops[0], taken(stocks, rows))
        return Joined(rows[wanted], articles[wanted], bits)

    def _filter(self, stop: Stop, rows: Batch) -> tuple[Words, Ints]:
        """(bits of rows that are wanted, their places)."""
        began = time.perf_counter_ns()
        bits = matched(self.filters["cacq"], rows)
        wanted = np.flatnonzero(np.bitwise_or.reduce(bits, axis=0))
        kept = bits if len(wanted) == len(rows) else bits[:, wanted]
        spent = time.perf_counter_ns() - began
        ended = len(rows) * self.queries - int(np.bitwise_count(bits).sum())
        self.policy.observe(stop, Visit(len(rows), len(wanted), ended, float(spent)))
        return kept, wanted

    def _probe(self, stop: Stop, stocks: Batch, wanted: Ints) -> tuple[Ints, Ints]:
        """(place in wanted, article) of each pair."""
        began = time.perf_counter_ns()
        rows, articles = self.articles.probe(stocks.columns[0].values[wanted])
        spent = time.perf_counter_ns() - began
        self.policy.observe(stop, Visit(len(wanted), len(rows), 0, float(spent)))
        return rows, articles

    def pull_up(self, stocks: Batch) -> Joined:
        """Join all, then filter."""
        rows, articles = self.articles.probe(stocks.columns[0].values)
        bits = matched(self.filters["pull_up"], taken(stocks, rows))
        wanted = np.flatnonzero(np.bitwise_or.reduce(bits, axis=0))
        return Joined(rows[wanted], articles[wanted], bits[:, wanted])

    def push_down(self, stocks: Batch) -> list[tuple[Ints, Ints]]:
        """Filter, then a join for each query."""
        standing = self.filters["push_down"]
        bits = matched(standing, stocks)
        found = []
        for query in range(self.queries):
            mine = np.flatnonzero(standing.wants(bits, query))
            rows, articles = self.articles.probe(stocks.columns[0].values[mine])
            found.append((mine[rows], articles))
        return found

    def counts(self, plan: str, result: Joined | list[tuple[Ints, Ints]]) -> list[int]:
        """Tuples of each query."""
        if isinstance(result, Joined):
            standing = self.filters[plan]
            return [int(standing.wants(result.bits, query).sum()) for query in range(self.queries)]
        return [len(rows) for rows, _ in result]


def matched(standing: Standing, rows: Batch) -> Words:
    """uint64[words, n], of any number of rows."""
    parts = [
        standing.match(rows.slice(first, min(first + BATCH_ROWS_MAX, len(rows))))
        for first in range(0, max(1, len(rows)), BATCH_ROWS_MAX)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def taken(stocks: Batch, rows: Ints) -> Batch:
    """A stock for each tuple."""
    return stocks.take(rows)


def quotes(rng: np.random.Generator, n: int = SYMBOLS) -> Batch:
    """An update of n stocks, in any order."""
    symbols = rng.permutation(SYMBOLS)[:n].astype(np.int32)
    numbers = np.arange(n, dtype=np.int64)
    columns = (Column(INTEGER, symbols), Column(DOUBLE, 100 * rng.random(n)))
    return Batch(SCHEMA, columns, np.zeros(n, np.int32), numbers, numbers)


def measure(
    plans: Plans, updates: list[Batch], rng: np.random.Generator, names: tuple[str, ...] = tuple(LABELS)
) -> tuple[dict[str, float], list[int]]:
    """(seconds of an update by plan, tuples of each query in all). Raises RuntimeError where they differ."""
    run: Mapping[str, Callable[[Batch], Joined | list[tuple[Ints, Ints]]]] = {
        name: getattr(plans, name) for name in names
    }
    spent: dict[str, list[float]] = {name: [] for name in names}
    total = np.zeros(plans.queries, np.int64)
    for stocks in updates:
        found = {}
        for name in rng.permutation(list(names)).tolist():
            began = time.perf_counter()
            result = run[name](stocks)
            spent[name].append(time.perf_counter() - began)
            found[name] = plans.counts(name, result)
        if any(counts != found["cacq"] for counts in found.values()):
            raise RuntimeError("the plans have not the same answers")
        total += found["cacq"]
    return {name: median(times) for name, times in spent.items()}, total.tolist()


def run(options: argparse.Namespace) -> Report:
    """Each number of queries with plans of its own."""
    figures: dict[str, Figure] = {}
    lines: dict[str, list[float]] = {plan: [] for plan in LABELS}
    for queries in options.queries:
        rng = np.random.default_rng(options.seed)
        constants = [0.0, *(100 * rng.random(queries - 1))]
        articles = Articles(rng.permutation(np.repeat(np.arange(SYMBOLS), options.articles)))
        plans = Plans([f"price > {x}" for x in constants], articles)
        updates = [quotes(rng) for _ in range(options.updates)]
        seconds, tuples = measure(plans, updates, rng)
        for plan, each in seconds.items():
            figures[f"ms_per_update.{plan}.q{queries}"] = each * 1e3
            lines[plan].append(each * 1e3)
        figures[f"tuples_per_update.q{queries}"] = sum(tuples) / len(updates)
        print(
            f"{queries}: " + ", ".join(f"{LABELS[p]} {s * 1e3:.3f} ms" for p, s in seconds.items()),
            file=sys.stderr,
        )
    curves = [Series(LABELS[plan], options.queries, line) for plan, line in lines.items()]
    return Report(figures, Plot("queries", "ms an update", curves, log=True))
