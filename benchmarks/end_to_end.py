"""JSON records in Kafka to results kept, a second: a whole broker, with Kafka on the same cores.

The embedded Kafka and a `tureen serve` run as processes of their own. A stream of PSoup's workload (an id,
four columns of values 0..255, a timestamp) has 1,000 standing queries as in the benchmark `selections`. Some
records warm it up; then the worker process is held still, the topic is loaded, and the clock runs from the
moment the worker goes on until `/sources` says that every row has entered: consumed, decoded, matched,
journalled in transactions, and saved as it goes. The count of one query is checked with numpy.

Figures: `records_per_s.q<queries>`, the median of the rounds; `megabytes_per_s.q<queries>` of JSON;
`registrations_per_s`, over HTTP in bulk, until they stand.
"""

import argparse
import json
import signal
import statistics
import sys
import time

import httpx
import numpy as np
import numpy.typing as npt

from benchmarks.psoup import COLUMNS, make_bounds, matches, text
from benchmarks.report import Figure, Report
from benchmarks.served import await_entered, create_stream, load, serving, worker
from tureen.protocol import new_handle

WARM_UP = 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=1_000, help="how many stand (default: %(default)s)")
    parser.add_argument("--records", type=int, default=1_500_000, help="of a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Measure the rounds in one broker."""
    rng = np.random.default_rng(options.seed)
    bounds = make_bounds(rng, options.queries)
    rates, megabytes = [], []
    with serving() as (broker, kafka):
        create_stream(broker)
        began_s = time.perf_counter()
        handle = _register(broker, bounds)
        registrations = options.queries / (time.perf_counter() - began_s)
        process = worker(broker)
        total, matching = 0, 0
        for number in range(options.rounds + 1):
            count = options.records if number else WARM_UP
            values = rng.integers(0, 256, (len(COLUMNS), count))
            matching += int(matches(bounds[0], values).sum())
            process.send_signal(signal.SIGSTOP)
            size = load(kafka, values, total)
            total += count
            began_s = time.perf_counter()
            process.send_signal(signal.SIGCONT)
            await_entered(broker, total)
            seconds = time.perf_counter() - began_s
            if number:
                rates.append(count / seconds)
                megabytes.append(size / seconds / 1e6)
                print(f"round {number}: {rates[-1]:,.0f} records/s", file=sys.stderr)
        _check(broker, handle, bounds[0], matching)
    figures: dict[str, Figure] = {
        f"records_per_s.q{options.queries}": statistics.median(rates),
        f"megabytes_per_s.q{options.queries}": statistics.median(megabytes),
        "registrations_per_s": registrations,
    }
    return Report(figures)


def _register(client: httpx.Client, bounds: npt.NDArray[np.int64]) -> str:
    """Register all; the handle of one that counts what the first one selects."""
    lines = [json.dumps({"sql": text(one)}) for one in bounds[1:]]
    handle = new_handle()
    counting = text(bounds[0]).replace("a, b, c, d", "COUNT(*) AS n")
    lines.append(json.dumps({"sql": counting, "handle": handle}))
    reply = client.post(
        "/queries", content="\n".join(lines), headers={"Content-Type": "application/x-ndjson"}
    )
    states = [json.loads(line)["state"] for line in reply.text.splitlines()]
    assert states == ["RUNNING"] * len(lines), set(states)
    return handle


def _check(client: httpx.Client, handle: str, bounds: npt.NDArray[np.int64], matching: int) -> None:
    answer = client.get(f"/queries/{handle}/snapshot").json()
    # At most the ten rows of the last millisecond are not visible yet.
    assert matching - 10 <= answer["rows"][0][0] <= matching, (answer["rows"], matching)
