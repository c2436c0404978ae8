"""Matches handed over instead of kept: each as a row and a query, in two arrays, for every batch.

What a consumer wants that acts on each match as it happens, as Esper's listeners do. The queries are those of
an engine's view, in a matcher of their own; matching counts as well as spelling the matches out.
"""

import time
from collections.abc import Iterator
from itertools import chain
from statistics import median

import numpy as np

from benchmarks import psoup
from benchmarks.psoup import SCHEMA, Bounds, Rows
from benchmarks.report import Figure
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.source import SourceName
from engine.queries.matching import RecordMatcher
from engine.stems.query_stem import QueryStem

PAIRS_MAX = 4_000_000
"""Most pairs of a call; so many take 32 MB."""
CALLS = 40
SECONDS = 3.0
CHECKED = 40


def hand_over(engine: Engine, rows: Rows, bounds: Bounds, matches_per_row: float) -> dict[str, Figure]:
    """Hand over some of the rows' matches with all queries; compare some queries' with numpy."""
    matcher = RecordMatcher(SourceName("psoup"), QueryStem(SCHEMA))
    matcher.follow(engine.view().standing)
    size = int(max(1, min(BATCH_ROWS_MAX, PAIRS_MAX / max(1.0, matches_per_row))))
    batches = _batches(rows, size)
    first = next(batches)
    found = matcher.pairs(first)
    counts = np.bincount(found.queries, minlength=len(bounds))
    number = {name: place for place, name in enumerate(matcher.query_ids)}
    for place in range(0, len(bounds), max(1, len(bounds) // CHECKED)):
        expected = int(psoup.matches(bounds[place], rows.values[:, : len(first)]).sum())
        if counts[number[f"q{place}"]] != expected:
            raise RuntimeError(f"query {place} was handed other rows than numpy finds")
    seconds: list[float] = []
    pairs: list[int] = []
    for batch in chain([first], batches):
        began = time.perf_counter()
        handed = len(matcher.pairs(batch))
        seconds.append(time.perf_counter() - began)
        pairs.append(handed)
        if len(seconds) == CALLS or sum(seconds) > SECONDS:
            break
    queries = len(bounds)
    return {
        f"matches_handed_over_per_s.q{queries}": float(np.mean(pairs)) / median(seconds),
        f"handed_over_rows_per_s.q{queries}": size / median(seconds),
    }


def _batches(rows: Rows, size: int) -> Iterator[Batch]:
    """Whole batches of this size."""
    for first in range(0, len(rows) - size + 1, size):
        yield rows.batch(first, first + size, first)
