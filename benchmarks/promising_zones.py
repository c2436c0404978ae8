"""Self-adjusting time zones: how soon a change of the stream is found, and how often one that is none.

20,000 rows of 10,000 items with Zipf 1.26 frequencies; then all items are swapped with others, and 20,000
rows more come, of which the first whose zone ends tells the change. No zone ends for its length or age. Lag:
rows after the swap until a zone ends. False cuts: zones that end before. Each of `--runs` has a seed of its
own.

Aimed at: found in each of 20 runs, median lag 4,000 rows at most, at most 2 false cuts in 20,000 rows, at
theta 0.7 and 64 rows.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.promising_insert import ITEMS, SKEW
from benchmarks.report import Plot, Report, Series
from engine.model.batch import Column
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import BIGINT
from engine.summaries.summary import Summary

DAY_MS = 86_400_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000, help="before and after the swap")
    parser.add_argument("--theta", type=float, default=0.7)
    parser.add_argument("--rows-min", type=int, default=64)


def run(options: argparse.Namespace) -> Report:
    """All runs. Raises RuntimeError: cuts depend on how the rows come."""
    settings = SummarySettings(theta=options.theta, zone_rows_min=options.rows_min, zone_length_max_ms=DAY_MS)
    lags: list[int] = []
    false_cuts = 0
    for seed in range(options.runs):
        rng = np.random.default_rng((options.seed, seed))
        weights = 1 / np.arange(1, ITEMS + 1) ** SKEW
        ids = rng.choice(2**40, 2 * ITEMS, replace=False)
        drawn = rng.choice(ITEMS, 2 * options.rows, p=weights / weights.sum())
        values = ids[np.where(np.arange(len(drawn)) < options.rows, drawn, ITEMS + drawn)]
        ends = zone_ends(values, settings, 8_192)
        if ends != zone_ends(values, settings, 777):
            raise RuntimeError("the zones depend on how rows are cut into batches")
        before = [end for end in ends if end <= options.rows]
        after = [end - options.rows for end in ends if end > options.rows]
        false_cuts += len(before)
        lags += after[:1]
        print(f"seed {seed}: {len(before)} before, found after {after[:1]}", file=sys.stderr)
    figures = {
        "found_share": len(lags) / options.runs,
        "lag_rows": float(np.median(lags)) if lags else float("nan"),
        "lag_rows.max": max(lags, default=0),
        "false_cuts_per_20000": 20_000 * false_cuts / (options.runs * options.rows),
    }
    plot = Plot("runs", "rows until found", [Series("lag", range(1, len(lags) + 1), sorted(lags))])
    return Report(figures, [plot])


def zone_ends(values: np.ndarray, settings: SummarySettings, batch: int) -> list[int]:
    """The row after each zone that ended because of a change."""
    summary = Summary(SummaryDefinition("items", "store", "item", DAY_MS, 2, 1, settings), BIGINT)
    for at in range(0, len(values), batch):
        part = values[at : at + batch]
        summary.enter(Column(BIGINT, part), np.arange(at, at + len(part)), at)
    return summary.zones.end[:-1].tolist()
