"""A thousand and ten thousand DISTINCT or EXCEPT ALL queries over the links, which share operators and state.

Each query has a predicate of its own, an interval of `bytes` that passes 12% of the rows (dense) or 0.26%
(narrow). `distinct` are the distinct sources of link 1, `except` its rows minus those of link 2 on the
source. All have one shape, so that they are columns of the same operators: a row is looked at once, and
state is kept by value and query. The queries emit their changes; those of some are added up and compared
with numpy. Which rows a query wants is found by the grouped filter of all (`maintenance` is lazy).

Figures: `rows_per_s.<distinct or except>.<dense or narrow>.q<queries>`, rows of all links that are read;
`changes_per_row...`, `state_bytes...` and `register_s...` by the same.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks.connection_answers import Counts
from benchmarks.connections import Connections
from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.update_patterns import (
    EMIT,
    LABELS,
    STRATEGIES,
    Drive,
    Schedule,
    rows_for,
    window_clause,
)
from benchmarks.update_patterns import add_arguments as add_common
from engine.model.step import StepResult
from tureen.errors import TureenError

SHARES: Mapping[str, float] = {"dense": 0.12, "narrow": 0.0026}
DENSE_MAX = 1_000
"""Each row is of 120 of a thousand dense queries, and of 1,200 of ten thousand."""
CHECKED = 20
LINKS: Mapping[str, Sequence[int]] = {"distinct": (0,), "except": (0, 1)}

Bounds = npt.NDArray[np.int64]
"""int64[queries, 2]: low <= bytes < high."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    add_common(parser)
    parser.set_defaults(windows=[20_000], strategies=["upa10"], times=1)
    parser.add_argument(
        "--queries", action=Numbers, nargs="+", default=[1_000, 10_000], help="(default: %(default)s)"
    )
    parser.add_argument("--of", nargs="+", choices=LINKS, default=list(LINKS), help="(default: both)")
    parser.add_argument("--passing", nargs="+", choices=SHARES, default=list(SHARES), help="(default: both)")


def run(options: argparse.Namespace) -> Report:
    """Each kind of query, each share, each number of queries."""
    figures: dict[str, Figure] = {}
    lines: list[Series] = []
    (window,), (strategy, *_) = options.windows, options.strategies
    rows = rows_for(options, window)
    if rows is None:
        return Report({})
    rng = np.random.default_rng(options.seed)
    for kind in options.of:
        for passing in options.passing:
            numbers = [n for n in options.queries if passing == "narrow" or n <= DENSE_MAX]
            rates: list[float] = []
            for queries in numbers:
                bounds = bounds_of(rng, rows, SHARES[passing], queries)
                try:
                    found = measure(kind, bounds, rows, window, strategy, options)
                except TureenError as refused:
                    print(f"{kind}, {passing}, {LABELS[strategy]}: refused, {refused}")
                    break
                at = f"{kind}.{passing}.q{queries}"
                figures |= {f"{name}.{at}": value for name, value in found.items()}
                rates.append(float(found["rows_per_s"]))
                print(f"{kind}, {passing}, {queries:,} queries: {rates[-1]:,.0f} rows/s")
            lines.append(Series(f"{kind}, {passing}", numbers[: len(rates)], rates))
    return Report(figures, Plot("queries", "rows/s", lines, log=True))


def bounds_of(rng: np.random.Generator, rows: Connections, share: float, queries: int) -> Bounds:
    """Intervals of bytes that pass so many of the rows, anywhere among them."""
    values = np.sort(rows.bytes[:2].ravel())
    low = rng.integers(0, int((1 - share) * len(values)), queries)
    high = np.minimum(low + int(share * len(values)), len(values) - 1)
    return np.stack([values[low], np.maximum(values[high], values[low] + 1)], axis=1)


def text(kind: str, bounds: Bounds, window: str) -> str:
    """The query of one interval, int64[2]."""
    low, high = bounds.tolist()
    where = f"WHERE bytes >= {low} AND bytes < {high}"
    if kind == "distinct":
        return f"SELECT DISTINCT src FROM link1 {window} {where}{EMIT}"
    return (
        f"SELECT src, dst FROM link1 {window} {where} "
        f"EXCEPT ALL ON (src) SELECT src, dst FROM link2 {window} {where}{EMIT}"
    )


def measure(
    kind: str, bounds: Bounds, rows: Connections, window: int, strategy: str, options: argparse.Namespace
) -> dict[str, Figure]:
    """Figures of so many queries."""
    schedule = Schedule.of(options, window)
    drive = Drive(rows, LINKS[kind], window, schedule.batch)
    texts = {f"q{place}": text(kind, one, window_clause(window)) for place, one in enumerate(bounds)}
    began = time.perf_counter()
    drive.register(texts, {"maintenance": "lazy", **STRATEGIES[strategy]})
    register_s = time.perf_counter() - began
    chosen = {f"q{place}": place for place in range(0, len(bounds), max(1, len(bounds) // CHECKED))}
    sources = 1 + int(rows.src.max())
    counts = {place: np.zeros(sources, np.int64) for place in chosen.values()}
    for _ in range(schedule.fill):
        add(counts, chosen, drive.step()[1])
    seconds: list[float] = []
    changes = 0
    gc.collect()
    gc.disable()
    for _ in range(schedule.times):
        total = 0.0
        for _ in range(schedule.stretch):
            taken, results = drive.step()
            total += taken
            changes += sum(len(each) for result in results for each in result.changes)
            add(counts, chosen, results)
        seconds.append(total)
    gc.enable()
    for place, found in counts.items():
        if not np.array_equal(found, answer(kind, bounds[place], rows, window, drive.units - 2, sources)):
            raise RuntimeError(f"the changes of q{place} do not add up to what numpy finds")
    stretch = schedule.stretch * schedule.batch * len(LINKS[kind])
    return {
        "rows_per_s": stretch / median(seconds),
        "changes_per_row": changes / (stretch * len(seconds)),
        "state_bytes": drive.engine.footprint().changes,
        "register_s": register_s,
    }


def add(counts: Mapping[int, Counts], chosen: Mapping[str, int], results: Sequence[StepResult]) -> None:
    """Add the changes of some queries to their answers, which are counted by source."""
    for result in results:
        for changes in result.changes:
            src = changes.table.column("src").to_numpy()
            for place, query_id in enumerate(changes.query_ids):
                into = counts.get(chosen.get(query_id, -1))
                if into is not None:
                    low, high = changes.starts[place : place + 2].tolist()
                    np.add.at(into, src[low:high], changes.weights[low:high])


def answer(kind: str, bounds: Bounds, rows: Connections, window: int, unit: int, sources: int) -> Counts:
    """numpy's answer of one interval at a unit, by source."""
    inside = slice(max(0, unit - window + 1), unit + 1)
    low, high = bounds.tolist()
    left, right = (
        np.bincount(
            rows.src[link, inside][(rows.bytes[link, inside] >= low) & (rows.bytes[link, inside] < high)],
            minlength=sources,
        )
        for link in range(2)
    )
    return (left > 0).astype(np.int64) if kind == "distinct" else np.maximum(left - right, 0)
