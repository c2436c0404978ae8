"""Scheduling: what waits in queues, and for how long, by policy (STREAM, CIDR 2003, section 4.2).

The paper's example and the one in which greedy fails are counted in units first and have to come out
exactly. Then plans of real operators run over real batches: a filter that evaluates a function of two
columns and keeps a share of the rows, and at the end a grouping (sort, sum) of the rows that are left.
Arrivals go by a clock that moves by the processor's time the operators took, so that what else runs on the
machine moves nothing. Bytes are those of the arrays that wait when a decision is made.

The paper's plan has two operators that take equally long, the first keeping a fifth; a batch arrives in
each unit of time of a burst. The paper saw 4 batches with FIFO and 2.2 with Chain at the end of a burst of
7. Four plans of different shapes get bursts of batches that fill 70 % of the time in the mean; a deadline
of `chain-deadline` is ten times what a batch costs.

Figures: `held.<policy>`, batches at the end of the paper's burst, counted; `paper_bytes.<policy>` and
`chain_to_fifo`, of the paper's plan with real operators; `peak_bytes.<policy>` and `delay_ms.p99.<policy>`,
of four plans; `scheduler_share`, the share of all time that decisions, queues and charts take, with Chain,
worked out by running the same batches again with operators that take no time, and `decision_us`, the same for
each run of an operator.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks.report import Figure, Report
from engine.overload.policies.choices import SCHEDULING_POLICIES
from engine.overload.scheduled_module import WaitingBatch
from engine.overload.scheduler import Scheduler
from tests.overload.simulated import sizes_held

Columns = npt.NDArray[np.float64]
"""float64[columns, rows]; the first is uniform in [0, 1)."""
Operator = Callable[[Columns], Columns]
Outcome = tuple[int, str | None, int, int]
"""Outcome of a run: ns, who consumes what came out, its bytes and rows."""

PAPER = (1.0, 0.2, 0.0)
FLAT_FIRST = (1.0, 0.9, 0.2, 0.0)
FOUR = (0.2,), (0.9, 0.22), (0.5, 0.5), (0.99,)
"""What the filters of each plan keep of what comes in."""
COLUMNS = 4
LOAD = 0.7
DEADLINE = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=8_192, help="of a batch (default: %(default)s)")
    parser.add_argument("--burst", type=int, default=7, help="batches of the paper's (default: %(default)s)")
    parser.add_argument("--bursts", type=int, default=20, help="of four plans (default: %(default)s)")
    parser.add_argument(
        "--modules", type=int, default=1_000, help="for scheduler_share (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="the median counts (default: %(default)s)")


def filtering(share: float, before: float = 1.0) -> Operator:
    """Keeps a share of rows whose first column lies below ``before``."""

    def run(columns: Columns) -> Columns:
        value = np.exp(np.sin(columns[1]) * np.cos(columns[2])) + np.sqrt(np.abs(columns[3]))
        kept = (columns[0] < share * before) & (value >= 0)
        return np.ascontiguousarray(columns[:, kept])

    return run


def grouping(passes: int = 1) -> Operator:
    """Rows in order of a key, counts and sums of its groups; ``passes`` keys, one after the other."""

    def run(columns: Columns) -> Columns:
        for number in range(passes):
            keys = (columns[1 + number % 3] * 64).astype(np.int64)
            order = np.argsort(keys, kind="stable")
            starts = np.flatnonzero(np.diff(keys[order], prepend=-1 << 40))
            if len(starts):
                np.add.reduceat(columns[2][order], starts)
        return np.empty((len(columns), 0))

    return run


@dataclass(frozen=True, slots=True)
class Seen:
    """peak: bytes. delays_ns: of each batch. share: of all time, what the scheduler took."""

    peak: float
    delays_ns: list[int]
    share: float
    decision_us: float


def simulate(
    policy: str,
    plans: Sequence[Sequence[Operator]],
    arrivals: Sequence[tuple[int, int, Columns]],
    latency_ns: int,
) -> Seen:
    """Run plans on what arrives: (ns, plan, batch), in order of time."""
    scheduler, operators = Scheduler(policy), {}
    waiting: dict[str, list[Columns]] = {}
    for number, plan in enumerate(plans):
        for place in range(len(plan) - 1, -1, -1):
            name = f"{number}.{place}"
            scheduler.add(name, [f"{number}.{place + 1}"] if place + 1 < len(plan) else [], plan=str(number))
            operators[name], waiting[name] = plan[place], []
    for name in reversed(list(operators)):  # what was measured before
        warm(scheduler, name, operators, arrivals)
    working, now, at, peak, runs = 0, 0, 0, 0.0, 0
    came: list[int] = []
    delays: list[int] = []
    outcomes: dict[str, list[Outcome]] = {}
    while True:
        while at < len(arrivals) and arrivals[at][0] <= now:
            when, number, batch = arrivals[at]
            name = f"{number}.0"
            waiting[name].append(batch)
            scheduler.put(name, WaitingBatch(at, batch.nbytes, batch.shape[1], when, when + latency_ns))
            came.append(when)
            at += 1
        peak = max(peak, scheduler.size)
        module = scheduler.choose(now)
        if module is None:
            if at == len(arrivals):
                break
            now = arrivals[at][0]
            continue
        entry = scheduler.take(module)
        batch = waiting[module.name].pop(0)
        before = time.thread_time_ns()
        out = operators[module.name](batch)
        del batch  # its memory is given back at the cost of whoever consumed it
        spent = time.thread_time_ns() - before
        working += spent
        runs += 1
        now += spent
        consumer = next(iter(module.shares), None)
        scheduler.done(module, entry.size, spent, {} if consumer is None else {consumer: out.nbytes})
        outcomes.setdefault(module.name, []).append((spent, consumer, out.nbytes, out.shape[1]))
        if consumer is None:
            delays.append(now - came[entry.origin])
        else:
            waiting[consumer].append(out)
            scheduler.put(consumer, WaitingBatch(entry.origin, out.nbytes, out.shape[1], now, entry.deadline))
    assert len(delays) == len(arrivals)
    for _ in range(3):  # the last time estimates are those of modules that have run for a while
        deciding = deciding_ns(scheduler, arrivals, outcomes, latency_ns)
    return Seen(peak, delays, deciding / (deciding + working), deciding / runs / 1e3)


def deciding_ns(
    scheduler: Scheduler,
    arrivals: Sequence[tuple[int, int, Columns]],
    outcomes: Mapping[str, list[Outcome]],
    latency_ns: int,
) -> int:
    """The processor's time of a scheduler alone: the same batches again, whose runs have the outcomes that
    those of their modules had, one after the other, and take no time.
    """
    following = {name: cycle(found) for name, found in outcomes.items()}
    sizes = [(f"{number}.0", batch.nbytes, batch.shape[1]) for _, number, batch in arrivals]
    began = time.thread_time_ns()
    for origin, (name, nbytes, rows) in enumerate(sizes):
        scheduler.put(name, WaitingBatch(origin, nbytes, rows, 0, latency_ns))
    while True:
        module = scheduler.choose(0)
        if module is None:
            return time.thread_time_ns() - began
        entry = scheduler.take(module)
        spent, consumer, nbytes, rows = next(following[module.name])
        if consumer is None:
            scheduler.done(module, entry.size, spent)
        else:
            scheduler.done(module, entry.size, spent, {consumer: nbytes})
            scheduler.put(consumer, WaitingBatch(entry.origin, nbytes, rows, 0, entry.deadline))


def warm(
    scheduler: Scheduler,
    name: str,
    operators: Mapping[str, Operator],
    arrivals: Sequence[tuple[int, int, Columns]],
) -> None:
    """Measure a module on what comes to it, as if it had run before."""
    number, place = name.split(".")
    batch = arrivals[0][2]
    for before in range(int(place)):
        batch = operators[f"{number}.{before}"](batch)
    module = scheduler[name]
    consumer = next(iter(module.shares), None)
    for _ in range(2 + (len(scheduler) < 100) * 14):
        began = time.thread_time_ns()
        out = operators[name](batch)
        spent = time.thread_time_ns() - began
        produced = {} if consumer is None else {consumer: float(out.nbytes)}
        scheduler.done(module, batch.nbytes, spent, produced)


def cost_ns(operator: Operator, batches: Sequence[Columns]) -> float:
    """The ns that an operator takes for one batch: the median over some batches that come in turn, since one
    that comes again at once is in the cache.
    """
    times = []
    for number in range(32):
        began = time.thread_time_ns()
        operator(batches[number % len(batches)])
        times.append(time.thread_time_ns() - began)
    return median(times)


def plan_of(shares: Sequence[float]) -> list[Operator]:
    """Filters one after the other, and a grouping."""
    before, plan = 1.0, []
    for share in shares:
        plan.append(filtering(share, before))
        before *= share
    return [*plan, grouping()]


def plan_ns(plan: Sequence[Operator], batches: Sequence[Columns]) -> float:
    """What a batch costs on its way through a plan."""
    total = 0.0
    for operator in plan:
        total += cost_ns(operator, batches)
        batches = [operator(batch) for batch in batches]
    return total


def run(options: argparse.Namespace) -> Report:
    """Counted, then measured."""
    rng = np.random.default_rng(options.seed)
    figures: dict[str, Figure] = {}
    burst = dict.fromkeys(range(1, 8), (0,))
    for policy in SCHEDULING_POLICIES:
        figures[f"held.{policy}"] = sizes_held(policy, [PAPER], burst, 15)[6]
    assert np.allclose(sizes_held("fifo", [PAPER], burst, 15)[:7], [1, 1.2, 2, 2.2, 3, 3.2, 4])
    assert np.allclose(sizes_held("chain", [PAPER], burst, 15)[:7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.2])
    assert np.allclose(sizes_held("greedy", [FLAT_FIRST], burst, 7), [1, 1.9, 2.2, 3, 3.9, 4.2, 5])
    assert np.allclose(sizes_held("chain", [FLAT_FIRST], burst, 7), [1, 1.9, 2.2, 3.1, 3.4, 4.3, 4.6])

    batches = [rng.random((COLUMNS, options.rows)) for _ in range(8)]
    first = filtering(0.2)
    unit_ns = cost_ns(first, batches)
    kept = [first(batch) for batch in batches]
    one, three = cost_ns(grouping(1), kept), cost_ns(grouping(3), kept)
    last = grouping(max(1, round(1 + (unit_ns - one) / max(1.0, (three - one) / 2))))
    arrivals = [(int(number * unit_ns), 0, batches[number % 8]) for number in range(options.burst)]
    for policy in SCHEDULING_POLICIES:
        peaks = [
            simulate(policy, [[first, last]], arrivals, int(100 * unit_ns)).peak
            for _ in range(options.repeats)
        ]
        figures[f"paper_bytes.{policy}"] = median(peaks)
    figures["chain_to_fifo"] = figures["paper_bytes.chain"] / figures["paper_bytes.fifo"]
    print(f"chain to fifo: {figures['chain_to_fifo']:.2f}", file=sys.stderr)

    plans = [plan_of(shares) for shares in FOUR]
    costs = [plan_ns(plan, batches) for plan in plans]
    bursts = bursty(options.bursts, costs, batches, rng)
    latency_ns = int(DEADLINE * max(costs))
    for policy in SCHEDULING_POLICIES:
        seen = [simulate(policy, plans, bursts, latency_ns) for _ in range(options.repeats)]
        figures[f"peak_bytes.{policy}"] = median(one.peak for one in seen)
        figures[f"delay_ms.p99.{policy}"] = median(
            float(np.percentile(one.delays_ns, 99)) / 1e6 for one in seen
        )
        print(f"{policy}: {figures[f'peak_bytes.{policy}']:,.0f} bytes", file=sys.stderr)

    many = [plan_of((0.9, 0.22)) for _ in range(max(1, options.modules // 3))]
    at_once = [(0, number, batches[number % 8]) for number in range(len(many))] * 3
    crowd = [simulate("chain", many, at_once, 1) for _ in range(options.repeats)]
    figures["scheduler_share"] = median(one.share for one in crowd)
    figures["decision_us"] = median(one.decision_us for one in crowd)
    return Report(figures)


def bursty(
    count: int, costs: Sequence[float], batches: Sequence[Columns], rng: np.random.Generator
) -> list[tuple[int, int, Columns]]:
    """Bursts of 4 to 24 batches of any plans that come five times as fast as they can be run, each with
    a pause behind it after which the mean load is LOAD.
    """
    arrivals, now = [], 0.0
    for _ in range(count):
        work, at = 0.0, now
        for number in rng.integers(len(costs), size=int(rng.integers(4, 25))).tolist():
            arrivals.append((int(at), number, batches[len(arrivals) % len(batches)]))
            at += costs[number] / 5
            work += costs[number]
        now += work / LOAD
    return arrivals
