"""Many registrations of which few are asked for: the others are swapped out, and come back when they are.

PSoup's workload: rows fill a window, then queries are registered in steps of 5,000, their constants any of
0..256, so that texts and predicates differ. The first stay warm; the others are swapped out after the step
that brings them, and the engine is saved into a store in RocksDB now and then, as a shard's is. Ids are as
long as a broker's.

Then queries that are swapped out are asked for in random order, one after another: the clock runs from the
question until the answer (all rows, as Arrow) is there. The same number of warm ones are asked in the same
run, and each answer is compared with numpy's count. Last the engine is restored from the store. The rows are
few enough that they fit in memory beside the warm queries, and all are retained.

In a broker: queries are registered over HTTP and swapped out, and the worker's own memory (USS) counts, a
slope from a fifth of them to all; then some are asked for over HTTP. `--no-broker` leaves it out.

Figures: `resident_mb` with all registrations, `resident_mb.warm` with the warm ones alone, `bytes_per_query`
in memory of one that is swapped out, `bytes_per_query.warm` of one that is not, the slope over the warm ones;
`disk_bytes_per_query`; `registrations_per_s`, of those that are swapped out, with saves, and
`registrations_per_s.warm`; `swapped_in_ms.p50`, `swapped_in_ms.p99`; `warm_ms.p50`, `warm_ms.p99`;
`restart_s`; `bytes_per_query.broker`, of one that is swapped out; `swapped_in_ms.broker.p50`,
`swapped_in_ms.broker.p99`, as answers tell.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from benchmarks import psoup
from benchmarks.psoup import ROWS_PER_MS, Bounds, Rows
from benchmarks.report import Figure, Report
from benchmarks.resident import resident_bytes
from benchmarks.served import DEADLINE_S, await_entered, create_stream, load, register, serving, worker
from engine.engine import Engine
from engine.model.limits import Limits
from engine.model.step import Register, Registration
from storage.store import Store, StoreOptions
from tureen.protocol import query_id

STEP = 5_000
SAVED_STEPS = 10
BROKER_ROWS = 1_000
SETTLE_S = 3.0
MB = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=10_000_000, help="in all (default: %(default)s)")
    parser.add_argument("--warm", type=int, default=100_000, help="of them (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=100_000, help="retained (default: %(default)s)")
    parser.add_argument(
        "--broker", action=argparse.BooleanOptionalAction, default=True, help="in a broker too"
    )
    parser.add_argument("--broker-queries", type=int, default=50_000, help="there (default: %(default)s)")
    parser.add_argument("--times", type=int, default=2_000, help="queries asked (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """All in one engine, then a restart of it."""
    rng = np.random.default_rng(options.seed)
    rows = psoup.make_rows(rng, options.rows)
    limits = Limits(queries_max=options.queries)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", StoreOptions(sync=False))
        engine = psoup.create(options.rows // ROWS_PER_MS, limits)
        engine.swapping.store = store
        psoup.fill(engine, rows)
        figures = registered(engine, store, options)
        disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        figures["disk_bytes_per_query"] = disk / options.queries
        figures |= asked(engine, rows, rng, options)
        del engine
        began_s = time.perf_counter()
        again = Engine.restore(store, limits)
        again.swapping.store = store
        figures["restart_s"] = time.perf_counter() - began_s
        there = len(list(again.view().queries())) + again.swapping.count
        assert there == options.queries, f"{there:,} queries came back of {options.queries:,}"
        store.close()
        del again
    if options.broker:
        figures |= in_broker(rng, options)
    return Report(figures)


def in_broker(rng: np.random.Generator, options: argparse.Namespace) -> dict[str, Figure]:
    """Bytes of a worker for a query that is swapped out, and how long it takes to come back."""
    count, held, handles = options.broker_queries, [], list[str]()
    texts = [psoup.text(one, "a, b") for one in psoup.make_bounds(rng, count, grid=1)]
    with serving(TUREEN_SWAP_AFTER_MS="1000") as (client, kafka):
        create_stream(client)
        load(kafka, rng.integers(0, 256, (len(psoup.COLUMNS), BROKER_ROWS)), 0)
        await_entered(client, BROKER_ROWS)
        for stop in (count // 5, count):
            while len(handles) < stop:
                handles += register(client, texts[len(handles) : min(len(handles) + STEP, stop)])
            await_swapped_out(client, stop)
            held.append(worker(client).memory_full_info().uss)
        took = []
        for handle in rng.choice(handles, min(options.times, count), replace=False).tolist():
            told = client.get(f"/queries/{handle}/snapshot").json().get("swapped_in_ms")
            if told is not None:
                took.append(told)
    figures = {f"swapped_in_ms.broker.p{part}": float(np.percentile(took, part)) for part in (50, 99)}
    return figures | {"bytes_per_query.broker": (held[1] - held[0]) / (count - count // 5)}


def await_swapped_out(client: httpx.Client, count: int) -> None:
    """Wait until so many are, and the worker is at rest. Raises TimeoutError."""
    end_s = time.monotonic() + DEADLINE_S
    while sum(shard["swapped_out"] for shard in client.get("/status").json()["shards"]) < count:
        if time.monotonic() > end_s:
            raise TimeoutError(f"not all of {count:,} queries are swapped out")
        time.sleep(0.2)
    time.sleep(SETTLE_S)


def bounds_of(first: int, count: int, seed: int) -> Bounds:
    """Those of the queries of a step, whenever they are asked for: nobody keeps ten million of them."""
    return psoup.make_bounds(np.random.default_rng((seed, first)), count, grid=1)


def name_of(number: int) -> str:
    """An id as long as a broker's."""
    return query_id(f"{number:032d}")


def registered(engine: Engine, store: Store, options: argparse.Namespace) -> dict[str, Figure]:
    """Register all queries, and swap out those that are not among the first."""
    began, took_s, held = resident_bytes(), [0.0, 0.0], 0
    for number, first in enumerate(range(0, options.queries, STEP)):
        count = min(STEP, options.queries - first)
        texts = [psoup.text(one, "a, b") for one in bounds_of(first, count, options.seed)]
        names = [name_of(first + n) for n in range(count)]
        coming = tuple(map(Registration, names, texts))
        is_warm = first < options.warm
        if not is_warm and first - STEP < options.warm:
            engine.save(store)
            held = resident_bytes()
        began_s = time.perf_counter()
        psoup.apply(engine, Register(coming))
        if not is_warm:
            out = engine.swapping.out(names)
            assert len(out) == count
        if number % SAVED_STEPS == SAVED_STEPS - 1:
            engine.save(store)
        took_s[is_warm] += time.perf_counter() - began_s
        if first % 500_000 == 0:
            print(f"{first:,} registered, {resident_bytes() / MB:,.0f} MB", file=sys.stderr)
    engine.save(store)
    swapped, warm = engine.swapping.count, options.queries - engine.swapping.count
    resident = resident_bytes()
    return {
        "resident_mb": resident / MB,
        "resident_mb.warm": held / MB,
        "bytes_per_query": (resident - held) / swapped,
        "bytes_per_query.warm": (held - began) / warm,
        "registrations_per_s": swapped / took_s[0],
        "registrations_per_s.warm": warm / took_s[1],
    }


def asked(
    engine: Engine, rows: Rows, rng: np.random.Generator, options: argparse.Namespace
) -> dict[str, Figure]:
    """Ask for answers of queries that are swapped out, and of as many that are warm."""
    figures: dict[str, Figure] = {}
    warm = options.queries - engine.swapping.count
    for name, low, high in (("swapped_in_ms", warm, options.queries), ("warm_ms", 0, warm)):
        took = []
        for number in rng.integers(low, high, options.times).tolist():
            began_s = time.perf_counter()
            engine.swapping.back([name_of(number)])
            answer = engine.view().snapshot(name_of(number), rows_max=options.rows)
            took.append(1_000 * (time.perf_counter() - began_s))
            first = number - number % STEP
            bounds = bounds_of(first, min(STEP, options.queries - first), options.seed)[number - first]
            wanted = int(psoup.matches(bounds, rows.values).sum())
            assert len(answer.table) == wanted, (number, len(answer.table), wanted)
        figures |= {f"{name}.p{part}": float(np.percentile(took, part)) for part in (50, 99)}
    return figures
