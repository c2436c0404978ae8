"""Entities: what it costs to measure them, to list ten thousand of them, and to edit one while data flows.

Three streams with queries: selections, eager aggregates, a join, and one in a hundred whose changes are
followed; so many that there are `--entities` entities with them.

`list_ms` is what a list of all of them takes: the report that the shard's thread makes between two steps
(`report_ms`, for which data waits), what each query pays, and JSON; the transport is not in it.

`statistics_share` is what measuring takes of the time of a step: two engines with the same queries take the
same batches in turn, one of them with a clock, and the medians of their steps are compared; the order within
a pair changes with each, and which was made first from one of two rounds to the other.

`edit_stall_ms.p99` is what an edit of a policy, of fusing or of composites keeps data waiting: its own time,
and by how much the next step took longer than the median without edits. `edit_stall_ms.buffers` is the
median of edits of the state buffers' settings, after which state is made anew.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np
import orjson

from benchmarks.events import Events
from benchmarks.report import Figure, Report
from benchmarks.timing import repeat
from broker.observe.entity_reading import EntityReading, page_of
from engine.model.attributes import AttributeValue

NAMES = ("first", "second", "third")
WINDOW_MS = 10_000
PER_MS = 1.0
ROWS = 1_000
KEYS = 500
FOLLOWED_EACH = 100
WARM_UP = 10

EDITS: tuple[tuple[str, str, tuple[AttributeValue, ...]], ...] = (
    ("query-stem/first", "policy", ("tickets", "fixed", "random")),
    ("query-stem/second", "grouped_filters", ("fused", "split", "auto")),
    ("query-stem/third", "policy", ("random", "tickets", "fixed")),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--entities", type=int, default=10_000, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=120, help="of each engine (default: %(default)s)")
    parser.add_argument("--edits", type=int, default=200, help="(default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Measure, list, edit."""
    shares = []
    for turn in range(2):  # which of two engines comes first in memory has its price, too
        engines = {each: made(options, measured=each) for each in ((True, False), (False, True))[turn]}
        shares.append(share(engines[True], engines[False], options.steps))
        measured = engines[True]
        del engines
        gc.collect()
    figures: dict[str, Figure] = {"statistics_share": statistics.mean(shares)}
    print(f"shares: {shares}", file=sys.stderr)
    figures |= listing(measured)
    figures |= edits(measured, options.edits)
    return Report(figures)


def made(options: argparse.Namespace, *, measured: bool) -> Events:
    """An engine with so many entities."""
    clock = time.thread_time_ns if measured else None
    events = Events(np.random.default_rng(options.seed), NAMES, WINDOW_MS, clock)
    events.register(texts(options.entities), {})
    there = len(events.engine.entities().parts) + options.entities
    print(f"{there:,} entities", file=sys.stderr)
    return events


def texts(count: int) -> Iterator[str]:
    """Queries, of each kind in turn."""
    for place in range(count):
        name = NAMES[place % len(NAMES)]
        if place == 0:
            yield (
                f"SELECT first.id, third.v FROM first [RANGE {WINDOW_MS // 10} MILLISECONDS], "
                f"third [RANGE {WINDOW_MS // 10} MILLISECONDS] WHERE first.k = third.k"
            )
        elif place % FOLLOWED_EACH == 1:
            yield (
                f"SELECT k, COUNT(*) AS n, SUM(v) AS s FROM {name} [RANGE {WINDOW_MS // 10} MILLISECONDS] "
                f"WHERE n > {place % 900} GROUP BY k EMIT CHANGES"
            )
        else:
            yield f"SELECT id, v FROM {name} [RANGE {WINDOW_MS} MILLISECONDS] WHERE n < {place % 1_000}"


def share(measured: Events, plain: Events, steps: int) -> float:
    """What measuring adds to a step, of its time without."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    batches = [
        {name: list(events.batches(name, steps + WARM_UP, ROWS, per_ms=PER_MS, keys=KEYS)) for name in NAMES}
        for events in (measured, plain)
    ]
    gc.collect()
    gc.disable()
    for place in range(steps + WARM_UP):
        for name in NAMES:
            order = (True, False) if place % 2 else (False, True)
            for which in order:
                events, mine = (measured, batches[0]) if which else (plain, batches[1])
                began = time.perf_counter()
                events.ingest(name, mine[name][place])
                if place >= WARM_UP:
                    seconds[which].append(time.perf_counter() - began)
    gc.enable()
    return statistics.median(seconds[True]) / statistics.median(seconds[False]) - 1.0


def listing(events: Events) -> dict[str, Figure]:
    """Measure the list of all entities."""

    def listed() -> bytes:
        report, standing = events.engine.entities(), events.engine.view().standing
        reading = EntityReading(0.0, {0: report}, {0: 0.0}, {0: standing}, {0: {}})
        return orjson.dumps(page_of(reading, None, None, "", 1 << 62))

    entities = orjson.loads(listed())["entities"]
    total = sum(
        one["statistics"]["cpu_share"]
        for one in entities
        if one["kind"] == "query" or not one["statistics"]["queries"]
    )
    if not 0.999 < total < 1.001:
        raise RuntimeError(f"the shares of queries and of what nobody reads are {total:.4f}, not 1")
    return {
        "entities": len(entities),
        "list_ms": repeat(listed, times=15).median_ms,
        "report_ms": repeat(events.engine.entities, times=15).median_ms,
    }


def edits(events: Events, count: int) -> dict[str, Figure]:
    """What they keep data waiting."""
    name = NAMES[0]
    batches = events.batches(name, 3 * count + 20, ROWS, per_ms=PER_MS, keys=KEYS)
    usual = statistics.median(_step(events, name, batches) for _ in range(count))
    stalls = []
    for place in range(count):
        entity, attribute, choices = EDITS[place % len(EDITS)]
        began = time.perf_counter()
        events.engine.edit(entity, {attribute: choices[place // len(EDITS) % len(choices)]})
        took = time.perf_counter() - began
        stalls.append(took + max(0.0, _step(events, name, batches) - usual))
    buffers = []
    for place in range(10):
        began = time.perf_counter()
        events.engine.edit("state-buffers", {"state_partitions": 9 + place % 2})
        took = time.perf_counter() - began
        buffers.append(took + max(0.0, _step(events, name, batches) - usual))
    events.engine.edit("state-buffers", {"state_partitions": 10})
    return {
        "step_ms": usual * 1e3,
        "edit_stall_ms.p50": float(np.quantile(stalls, 0.5)) * 1e3,
        "edit_stall_ms.p99": float(np.quantile(stalls, 0.99)) * 1e3,
        "edit_stall_ms.buffers": statistics.median(buffers) * 1e3,
    }


def _step(events: Events, name: str, batches: Iterator[object]) -> float:
    """Seconds of the next step."""
    batch = next(batches)
    began = time.perf_counter()
    events.ingest(name, batch)  # type: ignore[arg-type]
    return time.perf_counter() - began
