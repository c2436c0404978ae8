"""One query over the links, driven through an engine by a strategy: what the experiments have in common.

The links are streams link1, link2, link3 of an engine of their own; of those that the query reads batches
come in turn, a window's worth at most in each. The query emits its changes, which are handed over as columns.
After a full window is there the next ones are measured, whole windows: the time of steps, which is the
processor's, so that other work on the machine matters less, and the work of the operators, which has no
noise. Then the changes have to add up to what numpy finds (:mod:`benchmarks.connection_answers`).
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean, median

import numpy as np

from benchmarks import connections
from benchmarks.connection_answers import Answer, Answers, Counts
from benchmarks.connections import UNIT_MS, Connections, make_connections
from benchmarks.lbl_trace import read_trace
from benchmarks.numbers import Numbers
from benchmarks.sites import Sites
from broker.runtime import calibration
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.limits import Limits
from engine.model.maintenance import Costs, UnitCosts
from engine.model.step import Register, Registration, StepResult
from tureen.errors import TureenError

WINDOWS = [2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000]
"""Units: with a row of 50 bytes a unit 100 KB to 10 MB."""

EMIT = " EMIT CHANGES WITH (format = 'diff')"
"""Rows with weights: which of several equal rows comes or goes is not asked for."""

LIMITS = Limits(changes_max=1 << 28, join_candidates_max=1 << 40, intermediate_rows_max=1 << 40)

STRATEGIES: Mapping[str, Mapping[str, str]] = {
    "nt": {"strategy": "nt"},
    "direct": {"strategy": "direct"},
    "upa10": {"strategy": "upa", "partitions": "10"},
    "upa50": {"strategy": "upa", "partitions": "50"},
    "partitioned": {"strategy": "upa", "structure": "partitioned", "partitions": "10"},
    "negative": {"strategy": "upa", "structure": "negative", "partitions": "10"},
    "indexed": {"strategy": "upa", "structure": "indexed", "partitions": "10"},
    "ntjoinup": {"strategy": "nt"},
    "bag_nt": {"strategy": "nt"},
    "bag_partitioned": {"strategy": "upa", "structure": "partitioned", "partitions": "10"},
    "bag_indexed": {"strategy": "upa", "structure": "indexed", "partitions": "10"},
    "auto": {"strategy": "auto"},
}
"""By key of figures: options of a registration."""

LABELS: Mapping[str, str] = {
    "nt": "NT",
    "direct": "DIRECT",
    "upa10": "UPA(10)",
    "upa50": "UPA(50)",
    "partitioned": "UPA partitioned",
    "negative": "UPA negative",
    "indexed": "UPA indexed",
    "ntjoinup": "NT (join up)",
    "auto": "auto",
    "bag_nt": "bags, NT",
    "bag_partitioned": "bags, partitioned",
    "bag_indexed": "bags, indexed",
}


@dataclass(frozen=True, slots=True)
class Query:
    """A query over the links.

    text: of a window clause. links: those that it reads, from 0. answer: numpy's, None where it is compared
    otherwise. table: the name of a table of sites that it reads (:mod:`benchmarks.sites`).
    """

    text: Callable[[str], str]
    links: tuple[int, ...]
    answer: Answer | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What operators did to entries of their state: looked at, put in, took out; negative: tuples that they
    handed on to say that a row is gone.
    """

    visited: float = 0
    inserted: float = 0
    deleted: float = 0
    negative: float = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.visited + other.visited,
            self.inserted + other.inserted,
            self.deleted + other.deleted,
            self.negative + other.negative,
        )

    def since(self, before: Work, rows: int) -> Work:
        """What was done since then, per 1,000 rows."""
        share = 1_000 / max(1, rows)
        return Work(
            share * (self.visited - before.visited),
            share * (self.inserted - before.inserted),
            share * (self.deleted - before.deleted),
            share * (self.negative - before.negative),
        )

    @property
    def total(self) -> float:
        return self.visited + self.inserted + self.deleted + self.negative


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured of one strategy at one window.

    rows_per_s: rows of all links that the query reads. us_per_1000: their time. spread: of the windows that
    were measured, (slowest - fastest) / median. work: per 1,000 rows. state_bytes: the mean of what operators
    held, beside the rows of the streams, which take stem_bytes. came, went: changes per row. predicted: the
    work that the cost model expects, per 1,000 rows, where it was asked.
    """

    rows_per_s: float
    spread: float
    work: Work
    state_bytes: float
    stem_bytes: float
    came: float
    went: float
    predicted: float | None = None

    @property
    def us_per_1000(self) -> float:
        return 1e9 / self.rows_per_s


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that all experiments over the links have."""
    parser.add_argument(
        "--windows",
        action=Numbers,
        nargs="+",
        default=WINDOWS,
        help="units, a row of each link a unit (default: %(default)s)",
    )
    parser.add_argument("--strategies", nargs="+", choices=LABELS, help="of the figure's (default: all)")
    parser.add_argument("--times", type=int, default=3, help="windows measured (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=8, help="batches of a measured window at least (default: %(default)s)"
    )
    parser.add_argument(
        "--batch", type=int, default=BATCH_ROWS_MAX, help="rows of a batch at most (default: %(default)s)"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=60.0,
        help="seconds after which no further window is measured (default: %(default)s)",
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="of connections, such as LBL-CONN-7")


def rows_for(options: argparse.Namespace, window: int) -> Connections | None:
    """The rows to measure a window with; None where the trace is too short for it."""
    needed = Schedule.of(options, window).units
    if options.trace is None:
        return _drawn(options.seed, needed)
    rows = _traced(options.trace)
    if len(rows) < needed:
        print(f"w{window}: left out, the trace has {len(rows):,} units a link, {needed:,} are needed")
        return None
    return rows


@cache
def _traced(path: Path) -> Connections:
    return read_trace(path)


def _drawn(seed: int, units: int) -> Connections:
    return make_connections(np.random.default_rng(seed), units)


@dataclass(frozen=True, slots=True)
class Schedule:
    """batch: units of a batch. fill: batches before the first measured one, at least a window and some more.
    stretch: batches of a measured window, which are a window's units at least. times: measured windows.
    """

    batch: int
    fill: int
    stretch: int
    times: int

    @classmethod
    def of(cls, options: argparse.Namespace, window: int) -> Schedule:
        """What the options say of a window."""
        batch = min(options.batch, window)
        full = -(-window // batch)
        return cls(batch, full + 2, max(full, options.rounds), options.times)

    @property
    def units(self) -> int:
        """How many there are in all."""
        return self.batch * (self.fill + self.stretch * self.times)


def window_clause(units: int) -> str:
    """The last so many units, to the ms."""
    return f"[RANGE {UNIT_MS * units - 1} MILLISECONDS]"


@cache
def costs() -> Costs:
    """As a worker measures them when it starts."""
    found = calibration.measure()
    return found if found.units is not None else replace(found, units=UnitCosts())


class Drive:
    """An engine over the links and the rows to come. One owner."""

    def __init__(
        self,
        rows: Connections,
        links: Sequence[int],
        window: int,
        batch: int,
        table: str | None = None,
        *,
        chooses: bool = False,
    ) -> None:
        """batch: units of a step. table: of sites, which changes as they come. chooses: the cost model
        chooses plans and strategies; else queries run as they are written.
        """
        self.engine = Engine(LIMITS, costs=costs() if chooses else None)
        self.rows = rows
        self.units = 0
        """So many of each link were read."""
        self._links = links
        self._batch = batch
        self._clock_ms = 0
        connections.create(self.engine, window)
        self._sites = None if table is None else Sites(self.engine, table, rows)

    def register(self, texts: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Queries come. Raises the first refusal."""
        wanted = tuple(Registration(name, text, options=options) for name, text in texts.items())
        self.engine._now(Register(wanted), self._clock_ms)

    def step(self) -> tuple[float, list[StepResult]]:
        """A batch of each link: (seconds of the processor, what the steps caused)."""
        first, stop = self.units, self.units + self._batch
        self.units = stop
        self._clock_ms = UNIT_MS * stop
        batches = [(f"link{link + 1}", self.rows.batch(link, first, stop)) for link in self._links]
        if self._sites is not None:
            batches.append((self._sites.name, self._sites.batch(first, stop)))
        return self._ingest(batches)

    def jump(self, unit: int) -> tuple[float, list[StepResult]]:
        """As :meth:`step`, of one row of each link, at a unit far ahead."""
        batches = []
        for link in self._links:
            one = self.rows.batch(link, 0, 1)
            at = np.array([UNIT_MS * unit])
            columns = (*one.columns[:-1], replace(one.columns[-1], values=at))
            offset = np.array([self.units])
            batches.append((f"link{link + 1}", Batch(one.schema, columns, one.partition, offset, at)))
        self.units += 1
        self._clock_ms = UNIT_MS * unit
        return self._ingest(batches)

    def _ingest(self, batches: Sequence[tuple[str, Batch]]) -> tuple[float, list[StepResult]]:
        began = time.process_time()
        found = [self.engine.ingest(name, batch, self._clock_ms) for name, batch in batches]
        seconds = time.process_time() - began
        for each in found:
            for refused in each.broken.values():
                raise refused
        return seconds, found

    def predicted(self) -> float:
        """Entries that the cost model expects per 1,000 rows: it counts by the second, which is a unit."""
        cost = self.engine.explain(query_id="q").strategy.cost
        if cost is None:
            raise RuntimeError("the engine knows no costs")
        return 1_000 * cost.entries / len(self._links)

    def work(self) -> Work:
        """Work of all operators since they came."""
        graphs = list(self.engine._following.graphs.by_set.values())
        found = Work(sum(graph.nodes.visited for graph in graphs))
        for graph in graphs:
            done = graph.nodes.state_work
            found += Work(done.visited, done.inserted, done.deleted, done.negative)
        return found


class Folded:
    """The changes of a query, added up by source."""

    def __init__(self, sources: int) -> None:
        self.counts: Counts = np.zeros(sources, np.int64)
        self.came = self.went = 0

    def add(self, results: Sequence[StepResult]) -> None:
        """What some steps told of one query."""
        for result in results:
            for changes in result.changes:
                src = changes.table.column("src").to_numpy()
                self.counts += np.bincount(src, changes.weights, len(self.counts)).astype(np.int64)
                came = int((changes.weights > 0).sum())
                self.came += came
                self.went += len(changes) - came

    def check(self, query: Query, answers: Answers, unit: int) -> None:
        """Raises RuntimeError unless that is numpy's answer at a unit."""
        if query.answer is not None and not np.array_equal(self.counts, query.answer(answers, unit)):
            raise RuntimeError(f"the changes up to unit {unit} do not add up to what numpy finds")


def measure(
    query: Query,
    registered: Mapping[str, str],
    rows: Connections,
    window: int,
    options: argparse.Namespace,
    *,
    chooses: bool | None = None,
) -> Point:
    """One strategy at one window. registered: the options of the query. chooses: what they leave open is
    chosen by the cost model; None: if they ask for it.
    """
    schedule = Schedule.of(options, window)
    chooses = registered.get("strategy") == "auto" if chooses is None else chooses
    drive = Drive(rows, query.links, window, schedule.batch, query.table, chooses=chooses)
    text = query.text(window_clause(window)) + EMIT
    drive.register({"q": text}, {"maintenance": "none", **registered})
    answers = Answers.of(rows, window)
    folded = Folded(answers.sources_max)
    for _ in range(schedule.fill):
        folded.add(drive.step()[1])
        if chooses:
            drive.engine.revisions.revise({}, 1.0)
    folded.check(query, answers, drive.units - 2)
    came, went, before = folded.came, folded.went, drive.work()
    seconds: list[float] = []
    states: list[int] = []
    stems: list[int] = []
    began = time.monotonic()
    gc.collect()
    gc.disable()
    try:
        while len(seconds) < schedule.times:
            if seconds and time.monotonic() - began > options.budget:
                break
            total = 0.0
            for _ in range(schedule.stretch):
                taken, results = drive.step()
                total += taken
                folded.add(results)
                held = drive.engine.footprint()
                states.append(held.changes)
                stems.append(held.rows + held.matches + held.indexes)
            seconds.append(total)
    finally:
        gc.enable()
    folded.check(query, answers, drive.units - 2)
    stretch = schedule.stretch * schedule.batch * len(query.links)
    measured = stretch * len(seconds)
    return Point(
        stretch / median(seconds),
        (max(seconds) - min(seconds)) / median(seconds),
        drive.work().since(before, measured),
        mean(states),
        mean(stems),
        (folded.came - came) / measured,
        (folded.went - went) / measured,
        drive.predicted() if chooses else None,
    )


Points = dict[str, dict[int, Point]]
"""By strategy and window."""


def measure_all(
    queries: Mapping[str, Query],
    options: argparse.Namespace,
    also: Callable[[int, Connections], None] | None = None,
) -> Points:
    """Each strategy at each window. queries: by strategy. also: told of each window and its rows.

    Strategies that the engine refuses for the query are left out, with the reason.
    """
    points: Points = {}
    for window in options.windows:
        rows = rows_for(options, window)
        if rows is None:
            continue
        if also is not None:
            also(window, rows)
        for strategy, query in queries.items():
            if options.strategies and strategy not in options.strategies:
                continue
            try:
                point = measure(query, STRATEGIES[strategy], rows, window, options)
            except TureenError as refused:
                print(f"{LABELS[strategy]}, {window:,} units: refused, {refused}")
                continue
            points.setdefault(strategy, {})[window] = point
            print(
                f"{LABELS[strategy]}, {window:,} units: {point.rows_per_s:,.0f} rows/s, "
                f"work per 1,000 rows {point.work.total:,.0f}, state {point.state_bytes:,.0f} B"
            )
    return points
