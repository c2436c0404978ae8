"""Summaries of a stream: rows entered, values estimated, and the bytes they take.

Rows come in batches of 8,192, 20 of them a millisecond, over 10,000 items with Zipf 1.26 frequencies. `t1`:
none of it, rows are appended to 16 hash chains as a symmetric hash join does. `t2`: time zones of a quarter
of T1, one bucket. `t3`: the same zones, 16 buckets. `t4`: zones that end where the stream changes, 16
buckets. T2 to T4 are whole summaries as the engine has them, with hashes of the values, rows by bucket,
pyramids over zones and the 32 most frequent values of each cell, GRANULARITY 10 SECONDS, COLLAPSE (4, 3),
sketches of 5 x 64.

Then the distinct items of a batch are estimated in all zones (`estimates_per_s`, by cells alone;
`candidates_per_s`, by way of the pyramids, with what it takes to list them). At last a summary takes in
`--reaches` times its reach: `bytes_per_summary` is what it holds then, `bytes_grown` how much more than after
twice the reach. The benchmark checks that the cells have all rows in reach, and that the estimates of the
ten most frequent items are within four standard deviations.

Aimed at: t4 25 million rows a second, 30 million estimates a second, no growth.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
import numpy.typing as npt

from benchmarks.report import Figure, Report
from engine.kernels.compiled import kernel
from engine.model.batch import BATCH_ROWS_MAX, Column
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import BIGINT
from engine.summaries.summary import Summary

Ints = npt.NDArray[np.int64]

ITEMS = 10_000
SKEW = 1.26
ROWS_A_MS = 20
T1_MS = 10_000
CHAINS = 16
SETTINGS = {
    "t2": SummarySettings(buckets=1, theta=0.0),
    "t3": SummarySettings(theta=0.0),
    "t4": SummarySettings(zone_length_max_ms=T1_MS),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=4_000_000, help="of a stretch (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="stretches (default: %(default)s)")
    parser.add_argument("--reaches", type=int, default=100, help="for the bytes (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each structure, then estimates, then bytes."""
    rng = np.random.default_rng(options.seed)
    items = values_of(rng, options.rows)
    figures: dict[str, Figure] = {}
    chain_rows(items[: 2 * BATCH_ROWS_MAX])
    figures["rows_per_s.t1"] = options.rows / statistics.median(
        chain_rows(items) for _ in range(options.repeats)
    )
    for name, settings in SETTINGS.items():
        seconds = []
        fed(items[: 8 * BATCH_ROWS_MAX], settings)  # compiles
        for _ in range(options.repeats):
            summary, spent = fed(items, settings)
            seconds.append(spent)
        check(summary, items)
        figures[f"rows_per_s.{name}"] = options.rows / statistics.median(seconds)
        print(f"{name}: {dict(summary.ended)}, {len(summary.zones.first)} zones", file=sys.stderr)
    figures |= estimated(summary, items, options.repeats)
    figures |= bytes_of(rng, options.reaches)
    return Report(figures)


def values_of(rng: np.random.Generator, rows: int) -> Ints:
    """Scattered ids of Zipf distributed items."""
    weights = 1 / np.arange(1, ITEMS + 1) ** SKEW
    ids = rng.choice(2**40, ITEMS, replace=False)
    return ids[rng.choice(ITEMS, rows, p=weights / weights.sum())]


@kernel
def append(values: Ints, first: int, heads: Ints, following: Ints) -> None:
    """Rows first and on, in front of the chains of their values."""
    for i in range(values.shape[0]):
        chain = values[i] & (heads.shape[0] - 1)
        following[first + i] = heads[chain]
        heads[chain] = first + i


def chain_rows(values: Ints) -> float:
    """Seconds to append all rows."""
    heads, following = np.full(CHAINS, -1), np.full(len(values), -1)
    began = time.perf_counter()
    for at in range(0, len(values), BATCH_ROWS_MAX):
        append(values[at : at + BATCH_ROWS_MAX], at, heads, following)
    return time.perf_counter() - began


def definition(settings: SummarySettings, t1_ms: int = T1_MS) -> SummaryDefinition:
    """As the repeated experiments of the paper have it."""
    return SummaryDefinition("items", "store", "item", t1_ms, 4, 3, settings)


def fed(values: Ints, settings: SummarySettings) -> tuple[Summary, float]:
    """A summary of all rows with lists of frequent values, and the seconds that it took."""
    summary = Summary(definition(settings), BIGINT)
    summary.list_values(lambda first, end: Column(BIGINT, values[first:end]), 0)
    timestamp = np.arange(len(values)) // ROWS_A_MS
    began = time.perf_counter()
    for at in range(0, len(values), BATCH_ROWS_MAX):
        of_batch = timestamp[at : at + BATCH_ROWS_MAX]
        summary.enter(Column(BIGINT, values[at : at + BATCH_ROWS_MAX]), of_batch, at)
        summary.advance(int(of_batch[-1]))
    return summary, time.perf_counter() - began


def check(summary: Summary, values: Ints) -> None:
    """Raises RuntimeError: rows are missing, or an estimate is far off."""
    zones = summary.zones
    if int(zones.rows.sum()) != len(values) - int(zones.first[0]):
        raise RuntimeError("the cells have other rows than the stream")
    found, counts = np.unique(values, return_counts=True)
    frequent = found[np.argsort(-counts)[:10]]
    keys = summary.bucketing.keys(Column(BIGINT, frequent))
    estimates = summary.estimate(keys, np.arange(len(zones.first)))
    for zone, bound in enumerate(summary.error_bounds()):
        rows = values[zones.first[zone] : zones.end[zone]]
        true = (rows[None, :] == frequent[:, None]).sum(axis=1)
        if (np.abs(true - estimates[:, zone]) > 4 * bound + 1).any():
            raise RuntimeError(f"estimates of zone {zone} are off: {estimates[:, zone]}, not {true}")


def estimated(summary: Summary, values: Ints, repeats: int) -> dict[str, Figure]:
    """Distinct items of batches in all zones."""
    keys = summary.bucketing.keys(Column(BIGINT, np.unique(values[-BATCH_ROWS_MAX:])))
    zones = np.arange(len(summary.zones.first))
    of_cells, of_pyramids = [], []
    for _ in range(10 * repeats):
        began = time.perf_counter()
        summary.estimate(keys, zones)
        of_cells.append(time.perf_counter() - began)
        began = time.perf_counter()
        candidates = summary.candidates(keys, 0)
        of_pyramids.append(time.perf_counter() - began)
    return {
        "estimates_per_s": len(keys.hash) * len(zones) / statistics.median(of_cells),
        "candidates_per_s": len(candidates.key) / statistics.median(of_pyramids),
        "pruned_share": float(candidates.pruned.mean()),
    }


def bytes_of(rng: np.random.Generator, reaches: int) -> dict[str, Figure]:
    """Held after many times the reach, a row a ms, T1 of 100 ms."""
    summary = Summary(definition(SummarySettings(), 100), BIGINT)
    reach = summary.definition.reach_ms
    after_two = 0
    for at in range(reaches):
        values = values_of(rng, reach)
        first = at * reach
        summary.enter(Column(BIGINT, values), np.arange(first, first + reach), first)
        summary.advance(first + reach - 1)
        after_two = max(after_two, summary.nbytes) if at < 2 else after_two
    return {"bytes_per_summary": summary.nbytes, "bytes_grown": summary.nbytes - after_two}
