"""The list of queries: searched, sorted and paged on a broker with `--queries` of them while data flows.

Selections of a few shapes over one stream, which gets rows all the while. `first_ms` is the first request,
for which what is searched and sorted is made. Then in each of `--rounds` rounds, more than a second apart, so
that figures are new in each: `page_ms`, 100 queries sorted by a figure, in half of the rounds far down;
`search_ms`, 100 of those that contain a word and a number; `shapes_ms`, grouped by shape.

`other_ms.p99` is what another request, a health check, waits for the event loop all that time, and
`other_ms.p99.idle` before anybody asked for the list. `bytes_per_query` is the memory of the list.
"""

import argparse
import statistics
import threading
import time
from typing import Any

import httpx
import numpy as np

from benchmarks.report import Figure, Report
from benchmarks.served import create_stream, load, register, serving

PAUSE_S = 1.1
LOT = 10_000
SORTS = ("memory_bytes", "matches", "cpu_share", "rows_per_s", "age_ms", "text")
SHAPES = (
    "SELECT id FROM psoup WHERE a > {} AND b < {}",
    "SELECT COUNT(*) AS n FROM psoup WHERE a = {} OR c = {}",
    "SELECT a, COUNT(*) AS n FROM psoup WHERE d BETWEEN {} AND {} GROUP BY a",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2_000, help="a round (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Register, then ask."""
    rng = np.random.default_rng(options.seed)
    constants = rng.integers(0, 100_000, (options.queries, 2)).tolist()
    texts = [SHAPES[place % len(SHAPES)].format(*of) for place, of in enumerate(constants)]
    with serving(TUREEN_SHARDS="1") as (client, kafka):
        create_stream(client)
        for first in range(0, len(texts), LOT):
            register(client, texts[first : first + LOT])
        others = _Others(str(client.base_url))
        time.sleep(PAUSE_S)
        figures: dict[str, Figure] = {"other_ms.p99.idle": others.take_p99()}
        figures["first_ms"] = _ms(client, "/queries", sort="id")[0]
        took: dict[str, list[float]] = {"page_ms": [], "search_ms": [], "shapes_ms": []}
        for turn in range(options.rounds):
            load(kafka, rng.integers(0, 100_000, (4, options.rows)), turn * options.rows)
            time.sleep(PAUSE_S)
            offset = max(0, options.queries // 2 - 100) * (turn % 2)
            sort = SORTS[turn % len(SORTS)]
            ms, page = _ms(client, "/queries", sort=sort, order="desc", offset=offset, limit=100)
            if page["total"] != options.queries or len(page["queries"]) != min(100, options.queries):
                raise RuntimeError(f"{page['total']} of {options.queries} queries are listed")
            took["page_ms"].append(ms)
            word = str(constants[turn % options.queries][0])
            ms, found = _ms(client, "/queries", search=f"psoup {word}", limit=100)
            if not found["queries"] or any(word not in str(one) for one in found["queries"]):
                raise RuntimeError(f"a search for {word} found {found['queries'][:1]}")
            took["search_ms"].append(ms)
            ms, shapes = _ms(client, "/shapes")
            if shapes["total"] != min(len(SHAPES), options.queries):
                raise RuntimeError(f"{shapes['total']} shapes")
            took["shapes_ms"].append(ms)
        figures["other_ms.p99"] = others.take_p99()
        others.stop()
        for name, each in took.items():
            figures[f"{name}.p50"] = statistics.median(each)
            figures[f"{name}.p99"] = float(np.quantile(each, 0.99))
        figures["bytes_per_query"] = _held_bytes(client) / options.queries
    return Report(figures)


def _ms(client: httpx.Client, path: str, **parameters: Any) -> tuple[float, dict[str, Any]]:
    """How long a request took, and its answer."""
    began = time.perf_counter()
    reply = client.get(path, params=parameters)
    took = (time.perf_counter() - began) * 1e3
    found: dict[str, Any] = reply.raise_for_status().json()
    return took, found


def _held_bytes(client: httpx.Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("tureen_query_list_bytes "))


class _Others:
    """Asks for the broker's health again and again, in a thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ms: list[float] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._url, timeout=60.0) as client:
            while not self._stopped.wait(0.002):
                self._ms.append(_ms(client, "/healthcheck")[0])

    def take_p99(self) -> float:
        """The 99th percentile, in ms, of the times noted since the last call; 0 where there are none."""
        found, self._ms = self._ms, []
        return float(np.quantile(found, 0.99)) if found else 0.0

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
