"""Rows a second through standing selections keyed by a string: one query for each user.

`key = '...' AND value > c`, as `selections-selective`, but the key is a string of some 15 characters. With
10,000 keys each is some queries' constant; with 1,000,000 most rows have a key that no query names, and
nearly every row of a batch has a key of its own. Rows come as Arrow gives them from decoding; giving strings
codes is part of what is timed. Counts of sampled queries are checked with numpy afterwards.

Figures, by queries and distinct keys: `rows_per_s.q<queries>.k<keys>`, `ratio_to_integers.q<queries>.k<keys>`
(the same rows with the number in the place of the string, in the same run), `register_per_s...`; and
`rows_per_s.k<keys>`, the least over the numbers of queries. `ratio_to_integers.<join|group_by|distinct>`: how
fast those are by strings, by integers being 1 (:mod:`benchmarks.string_keys`).
"""

import argparse
import gc
import sys
import time

import numpy as np
import pyarrow as pa

from benchmarks import psoup, string_keys
from benchmarks.psoup import ROWS_PER_MS
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.selections import CHECKED_QUERIES, STRETCHES, add_sizes
from benchmarks.timing import Timing
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import BIGINT, INTEGER, STRING, TIMESTAMP, Type

VALUES = 1_000
NAMED = 10_000
"""Keys that queries name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    add_sizes(parser, queries=[20_000, 100_000], rows=2_000_000)
    parser.add_argument("--related", type=int, default=200_000, help="rows that are joined and grouped")
    parser.add_argument("--related-keys", type=int, default=100_000, help="distinct keys of those")
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 1_000_000], help="distinct keys")


def run(options: argparse.Namespace) -> Report:
    """Measure each number of keys and queries in engines of its own, strings and integers in turn."""
    figures: dict[str, Figure] = {}
    series = []
    for keys in options.keys:
        rates = []
        for queries in options.queries:
            name = f"q{queries}.k{keys}"
            rate = {}
            for type_ in (STRING, BIGINT):
                bench = Bench(type_, keys, queries, options)
                rate[type_], figures[f"spread.{name}"] = bench.rate()
                bench.check()
                if type_ is STRING:
                    figures[f"register_per_s.{name}"] = bench.register_per_s
            figures[f"rows_per_s.{name}"] = rate[STRING]
            figures[f"ratio_to_integers.{name}"] = rate[STRING] / rate[BIGINT]
            rates.append(rate[STRING])
            text = f"{rate[STRING]:,.0f} rows/s, by integers {rate[BIGINT]:,.0f}"
            print(f"{keys:,} keys, {queries:,} queries: {text}", file=sys.stderr)
        figures[f"rows_per_s.k{keys}"] = min(rates)
        series.append(Series(f"{keys:,} keys", options.queries, rates))
    for asked, ratio in string_keys.ratios(options.related, options.related_keys, options.seed).items():
        figures[f"ratio_to_integers.{asked}"] = ratio
    return Report(figures, Plot("standing queries", "rows/s", series, log=True))


class Bench:
    """One engine with its rows and queries."""

    def __init__(self, type_: Type, keys: int, queries: int, options: argparse.Namespace) -> None:
        self._type = type_
        rng = np.random.default_rng(options.seed)
        self._stretch = -(-options.rows // (STRETCHES * BATCH_ROWS_MAX)) * BATCH_ROWS_MAX
        self._warm_up = -(-2 * options.retain // BATCH_ROWS_MAX) * BATCH_ROWS_MAX
        n = self._warm_up + STRETCHES * self._stretch
        self._key = rng.integers(0, keys, n)
        self._value = rng.integers(0, VALUES, n, np.int32)
        self._timestamp = np.arange(n, dtype=np.int64) // ROWS_PER_MS
        self._texts = np.array([text_of(number) for number in range(keys)], object)
        self._wanted = rng.integers(0, min(keys, NAMED), queries) * max(1, keys // NAMED)
        self._above = rng.integers(VALUES - VALUES // 10, VALUES, queries)
        self._schema = Schema(
            (Field("key", type_), Field("value", INTEGER), Field("ts", TIMESTAMP, nullable=False))
        )
        self._engine = Engine()
        self._engine.create(
            f"CREATE STREAM events (key {type_.kind.value}, value INTEGER, ts TIMESTAMP NOT NULL) WITH "
            f"(topic='events', timestamp='ts') RETAIN {options.retain // ROWS_PER_MS} MILLISECONDS"
        )
        began = time.perf_counter()
        psoup.register(
            self._engine,
            (
                f"SELECT key, value FROM events WHERE key = {self._literal(key)} AND value > {low}"
                for key, low in zip(self._wanted.tolist(), self._above.tolist(), strict=True)
            ),
        )
        self.register_per_s = queries / (time.perf_counter() - began)

    def _literal(self, key: int) -> str:
        return f"'{text_of(key)}'" if self._type is STRING else str(key)

    def rate(self) -> tuple[float, float]:
        """(rows a second, spread), after a warm-up."""
        clock_ms = int(self._timestamp[-1])
        for batch in map(self._batch, self._decoded(0, self._warm_up)):
            self._engine.ingest("events", batch, clock_ms)
        seconds = []
        for begin in range(self._warm_up, len(self._timestamp), self._stretch):
            decoded = self._decoded(begin, begin + self._stretch)
            gc.collect()
            began = time.perf_counter()
            for rows in decoded:
                self._engine.ingest("events", self._batch(rows), clock_ms)
            seconds.append(time.perf_counter() - began)
        timing = Timing(tuple(seconds))
        return timing.per_s(self._stretch), timing.spread

    def _decoded(self, first: int, stop: int) -> list[tuple[int, int, pa.Array]]:
        """Batches as decoding gives them: strings as Arrow arrays."""
        found = []
        for low in range(first, stop, BATCH_ROWS_MAX):
            key = self._key[low : low + BATCH_ROWS_MAX]
            array = pa.array(self._texts[key], pa.string()) if self._type is STRING else pa.array(key)
            found.append((low, low + len(key), array))
        return found

    def _batch(self, rows: tuple[int, int, pa.Array]) -> Batch:
        first, stop, keys = rows
        timestamp = self._timestamp[first:stop]
        return Batch(
            self._schema,
            (
                Column.decoded(self._type, keys),
                Column(INTEGER, self._value[first:stop]),
                Column(TIMESTAMP, timestamp),
            ),
            np.zeros(stop - first, np.int32),
            np.arange(first, stop, dtype=np.int64),
            timestamp,
        )

    def check(self) -> None:
        """Compare answers of some queries with numpy."""
        view = self._engine.view()
        source = view.sources()[0]
        assert source.now_ms is not None
        assert source.retained_from_ms is not None
        inside = (self._timestamp >= source.retained_from_ms) & (self._timestamp <= source.now_ms)
        key, value = self._key[inside], self._value[inside]
        for place in range(0, len(self._wanted), max(1, len(self._wanted) // CHECKED_QUERIES)):
            wanted = (key == self._wanted[place]) & (value > self._above[place])
            answer = view.snapshot(f"q{place}").table
            if not np.array_equal(answer[1].to_numpy(), value[wanted]):
                raise RuntimeError(f"query {place} has {answer.num_rows} rows, numpy {int(wanted.sum())}")


def text_of(key: int) -> str:
    """The string of a key."""
    return f"customer-{key:06d}"
