"""The `join` benchmark where queries want few of the rows: what is left of its work, and how fast it is."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks import joined
from benchmarks.joined import VALUES, Rows
from benchmarks.psoup import Bounds
from benchmarks.report import Figure, Plot, Report, Series

SPARSE = 50
"""One of so many rows has a value that queries ask for."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What numpy says of a join. rows: how many rows a query wants. combinations: of such rows. wanted: those
    of them that one query wants as a whole.
    """

    rows: int
    combinations: int
    wanted: int


def report(options: argparse.Namespace) -> Report:
    """Measure each number of queries, over rows that few want and rows that are all wanted. Raises
    RuntimeError: what was counted is not what numpy says.
    """
    if options.ways != 2:
        raise SystemExit("--selective is measured with two streams")
    rng = np.random.default_rng(options.seed)
    warm_up, stretch = joined.lengths(options.rows, 2, options.window)
    count = warm_up + joined.STRETCHES * stretch
    rows = joined.make_rows(rng, count, 2, options.keys, SPARSE * VALUES)
    all_wanted = Rows(2, rows.k, rows.v % VALUES, rows.values)
    figures: dict[str, Figure] = {}
    rates, dense = [], []
    for queries in options.queries:
        bounds = joined.make_bounds(rng, queries, 2, rate=1.0)
        engine = joined.create(2)
        timing, _ = joined.measure(engine, rows, bounds, options.window, warm_up, stretch)
        figures |= checked(engine.stats(), rows, bounds, options.window, queries)
        beside, _ = joined.measure(joined.create(2), all_wanted, bounds, options.window, warm_up, stretch)
        rates.append(timing.per_s(stretch))
        dense.append(beside.per_s(stretch))
        figures[f"rows_per_s.q{queries}"] = rates[-1]
        figures[f"spread.q{queries}"] = timing.spread
        figures[f"wanted_rows_per_s.q{queries}"] = dense[-1]
        figures[f"ratio_to_wanted.q{queries}"] = rates[-1] / dense[-1]
        print(f"{queries:,} queries: {rates[-1]:,.0f} rows/s, all wanted {dense[-1]:,.0f}", file=sys.stderr)
    series = [Series("2% wanted", options.queries, rates), Series("all wanted", options.queries, dense)]
    return Report(figures, Plot("standing queries", "rows/s", series, log=True))


def checked(
    stats: Mapping[str, Mapping[str, object]], rows: Rows, bounds: Bounds, window: int, queries: int
) -> dict[str, Figure]:
    """What the join counted, as shares. Raises RuntimeError."""
    (told,) = [values for module, values in stats.items() if module.startswith("join/")]
    indexed, probing, kept = (int(str(told[key])) for key in ("rows_wanted", "probes", "composites_found"))
    expected = expect(rows, bounds, window)
    beyond = rows.ways  # rows that bring NOW to the last of the others
    if not (expected.rows <= indexed <= expected.rows + beyond and probing <= indexed):
        raise RuntimeError(f"{indexed} rows were indexed, {probing} probed, {expected.rows} are wanted")
    if not expected.wanted <= kept <= expected.combinations:
        raise RuntimeError(f"{kept} combinations were kept: {expected}")
    return {
        f"indexed_share.q{queries}": indexed / len(rows),
        f"probing_share.q{queries}": probing / len(rows),
        f"kept_share.q{queries}": kept / max(1, expected.combinations),
    }


def expect(rows: Rows, bounds: Bounds, window: int) -> Expected:
    """O(rows that are wanted * partners of a row, without windows)."""
    together = np.zeros((VALUES, VALUES), np.bool_)
    alone = np.zeros((2, VALUES), np.bool_)
    for (low, high), (other_low, other_high) in bounds.tolist():
        together[low:high, other_low:other_high] = True
        alone[0, low:high] = alone[1, other_low:other_high] = True
    values = np.minimum(rows.v, VALUES - 1)
    wanted = np.flatnonzero((rows.v < VALUES) & alone[np.arange(len(rows)) % 2, values])
    combinations = full = 0
    keys = rows.k[wanted]
    order = np.argsort(keys, kind="stable")
    for mine in np.split(wanted[order], np.flatnonzero(np.diff(keys[order])) + 1):
        one, other = mine[mine % 2 == 0], mine[mine % 2 == 1]
        met = meet(one[:, None], other[None, :], window)
        combinations += int(met.sum())
        full += int((met & together[values[one][:, None], values[other][None, :]]).sum())
    return Expected(len(wanted), combinations, full)


def meet(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], window: int) -> npt.NDArray[np.bool_]:
    """Whether rows of both streams are in their windows together, at the later one's instant or after."""
    first, last = np.minimum(one, other), np.maximum(one, other)
    place = first % 2
    seen = (last - place + 1) // 2  # rows of the earlier one's stream before the later one
    met: npt.NDArray[np.bool_] = first >= 2 * np.maximum(0, seen - window) + place
    return met
