"""Why PSoup's experiments come out otherwise here: the supposed cause is removed, and measured again.

1. `psoup-table2` and `psoup-fig7`: NoMat is not an order of magnitude behind PSoup-P, and the two PSoups do
   not change places. Supposed causes: predicates are evaluated a column at a time; a request costs something
   whatever it is for; a kept answer is handed over and not copied. Removed: the three systems over the
   same rows and answers as loops of compiled code that go row by row, without an engine (`by_rows_ms`). NoMat
   tests a row's factors until one fails and copies the row; PSoup-P goes over the bits of all retained rows
   and copies the rows whose bit is set; PSoup-C goes along a linked list of its answer, whose nodes lie
   scattered in memory, and copies the rows. Beside it the engine (`response_ms`), and what it takes for an
   answer of one row at most (`fixed_ms`).
2. `psoup-fig8`: PSoup-P takes as long as NoMat for joins by inequality. Supposed cause: their combinations
   are not kept. Removed: they are kept, as two arrays of places, and the answer is made of them
   (`kept_pairs_ms`), beside PSoup-P as it is.
3. `psoup-fig9-selections`: PSoup-P without the index is not an order ahead of PSoup-C. Supposed cause: an
   engine for each query pays for its rows and its steps. Removed: the queries want no row, so that nothing is
   left to keep or to hand over (`idle`); `idle_share` is the share of the time that this takes.

Figures: `by_rows_ms.<system>.i<intervals>`, `response_ms.<system>.i<intervals>`, `fixed_ms.<system>`;
`kept_pairs_ms.w<rows>`, `response_ms.psoup_p.w<rows>`; `rows_per_s.<as_it_is or idle>.q<queries>` of PSoup-P
without the index, `idle_share.q<queries>`, `rows_per_s.psoup_c.q<queries>` of PSoup-C with it.
"""

import argparse
import sys
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import joined, psoup, psoup_fig8
from benchmarks.numbers import Numbers
from benchmarks.paper import SYSTEMS, VALUES, WARM, intervals, respond
from benchmarks.psoup import Bounds, Rows
from benchmarks.psoup_fig7 import standing
from benchmarks.psoup_fig9_selections import rate
from benchmarks.report import Figure, Report
from benchmarks.timing import repeat
from engine.kernels.compiled import kernel
from engine.model.batch import BATCH_ROWS_MAX

RATE_WINDOW, RATE_BATCHES = 1_000, 60
"""Rows of the window and of a batch, and batches that are timed at most, in 3."""

Values = npt.NDArray[np.int32]
Copied = npt.NDArray[np.int32]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--intervals", action=Numbers, nargs="+", default=[1, 2, 4], help="a query (default: %(default)s)"
    )
    parser.add_argument("--window", type=int, default=32_768, help="rows of 1 (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=64, help="of each number in 1 (default: %(default)s)")
    parser.add_argument("--times", type=int, default=7, help="sweeps over them (default: %(default)s)")
    parser.add_argument(
        "--sides",
        action=Numbers,
        nargs="+",
        default=[64, 256, 512],
        help="rows of a side in 2 (default: %(default)s)",
    )
    parser.add_argument(
        "--unshared",
        action=Numbers,
        nargs="+",
        default=[16, 64, 256],
        help="queries of 3 (default: %(default)s)",
    )
    parser.add_argument(
        "--budget", type=float, default=2.0, help="seconds a point of 3 (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """All three."""
    rng = np.random.default_rng(options.seed)
    figures: dict[str, Figure] = {}
    rows = psoup.make_rows(rng, options.window + 2 * BATCH_ROWS_MAX, per_ms=1)
    for number in options.intervals:
        bounds = intervals(rng, [number] * options.queries)
        figures |= {
            f"{name}.i{number}": ms
            for name, ms in selected(rows, bounds, options.window, options.times).items()
        }
    figures |= fixed(rows, options.window, options.times)
    figures |= kept_pairs(rng, options.sides, options.times)
    many = psoup.make_rows(rng, (RATE_BATCHES + WARM) * RATE_WINDOW, per_ms=1)
    for queries in options.unshared:
        bounds = intervals(rng, rng.integers(1, 5, queries).tolist())
        told = unshared(many, bounds, options.budget)
        figures |= {f"{name}.q{queries}": each for name, each in told.items()}
    return Report(figures)


def selected(rows: Rows, bounds: Bounds, window: int, times: int) -> dict[str, float]:
    """``response_ms.<system>`` and ``by_rows_ms.<system>`` of 1, a query.

    Raises RuntimeError where a loop finds another number of rows than the engine.
    """
    engines = {s: standing(rows, window, bounds, [window], mode) for s, mode in SYSTEMS.items()}
    names = [f"w{window}q{n}" for n in range(len(bounds))]
    responses = respond(engines, names, times)
    view = engines["psoup_p"].view()
    end = len(rows) - 1  # NOW is one row behind
    held = np.ascontiguousarray(rows.values[:, end - window : end].T)
    out = np.empty_like(held)
    rng = np.random.default_rng(0)
    kept = [Kept(held, one, rng) for one in bounds]
    for name, one in zip(names, kept, strict=True):
        counts = {view.snapshot(name).table.num_rows, len(one.places)}
        counts |= {loop(held, one, out) for loop in LOOPS.values()}
        if len(counts) > 1:
            raise RuntimeError(f"{name} has {counts} rows")
    figures = {f"response_ms.{system}": ms for system, ms in responses.items()}
    for system, loop in LOOPS.items():
        timing = repeat(lambda loop=loop: [loop(held, one, out) for one in kept], times=times)
        figures[f"by_rows_ms.{system}"] = timing.median_ms / len(kept)
        print(
            f"{system}: {responses[system]:.4f} ms, by rows {figures[f'by_rows_ms.{system}']:.4f}",
            file=sys.stderr,
        )
    return figures


class Kept:
    """What the three systems have of a query. bounds: int64[4, 2]; bits: uint64 words of the held rows;
    first, following, places: the list of its answer, whose nodes lie in no order.
    """

    def __init__(self, held: Values, bounds: Bounds, rng: np.random.Generator) -> None:
        self.bounds = bounds
        wanted = psoup.matches(bounds, held.T)
        self.columns = np.flatnonzero((bounds[:, 0] > 0) | (bounds[:, 1] < VALUES))
        self.bits = np.packbits(wanted, bitorder="little").view(np.uint64)
        rows = np.flatnonzero(wanted)
        nodes = rng.permutation(len(rows))
        self.places = np.empty(len(rows), np.int64)
        self.places[nodes] = rows
        self.following = np.full(len(rows), -1)
        self.following[nodes[:-1]] = nodes[1:]
        self.first = int(nodes[0]) if len(rows) else -1


@kernel
def _nomat(held: Values, columns: npt.NDArray[np.int64], bounds: Bounds, out: Copied) -> int:
    found = 0
    for row in range(len(held)):
        wanted = True
        for column in columns:
            value = held[row, column]
            if value < bounds[column, 0] or value >= bounds[column, 1]:
                wanted = False
                break
        if wanted:
            out[found] = held[row]
            found += 1
    return found


@kernel
def _psoup_p(held: Values, bits: npt.NDArray[np.uint64], out: Copied) -> int:
    found = 0
    for word in range(len(bits)):
        left = bits[word]
        row = 64 * word
        while left:
            if left & np.uint64(1):
                out[found] = held[row]
                found += 1
            left >>= np.uint64(1)
            row += 1
    return found


@kernel
def _psoup_c(
    held: Values, first: int, following: npt.NDArray[np.int64], places: npt.NDArray[np.int64], out: Copied
) -> int:
    found = 0
    node = first
    while node >= 0:
        out[found] = held[places[node]]
        found += 1
        node = following[node]
    return found


LOOPS = {
    "nomat": lambda held, one, out: int(_nomat(held, one.columns, one.bounds, out)),
    "psoup_p": lambda held, one, out: int(_psoup_p(held, one.bits, out)),
    "psoup_c": lambda held, one, out: int(_psoup_c(held, one.first, one.following, one.places, out)),
}


def fixed(rows: Rows, window: int, times: int) -> dict[str, float]:
    """``fixed_ms.<system>`` of 1, an answer over a window of one row."""
    bounds = np.tile(np.array([0, VALUES // 2]), (16, 4, 1))
    engines = {s: standing(rows, window, bounds, [1], mode) for s, mode in SYSTEMS.items()}
    responses = respond(engines, [f"w1q{n}" for n in range(len(bounds))], times)
    return {f"fixed_ms.{system}": ms for system, ms in responses.items()}


def kept_pairs(rng: np.random.Generator, sides: list[int], times: int) -> dict[str, float]:
    """``kept_pairs_ms`` and ``response_ms.psoup_p`` of 2, by rows of a side."""
    factor = "s0.v < s1.v"
    rows = joined.make_rows(rng, 2 * max(sides), 2, VALUES)
    engine = psoup_fig8.standing(rows, [factor], sides, SYSTEMS["psoup_p"])
    view = engine.view()
    figures = {}
    for side in sides:
        left, right = rows.v[0::2][-side:], rows.v[1::2][-side:]
        places = np.nonzero(left[:, None] < right[None, :])
        made, answer = _made(left, right, *places), view.snapshot(f"w{side}q0").table
        if made.num_rows != answer.num_rows:
            raise RuntimeError(f"{made.num_rows} pairs are kept, and {answer.num_rows} in the answer")
        of_pairs = repeat(partial(_made, left, right, *places), times=times)
        figures[f"kept_pairs_ms.w{side}"] = of_pairs.median_ms
        asked = repeat(partial(view.snapshot, f"w{side}q0"), times=times)
        figures[f"response_ms.psoup_p.w{side}"] = asked.median_ms
    return figures


def _made(
    left: Values, right: Values, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> pa.Table:
    return pa.table({"v": left[first], "w": right[second]})


def unshared(rows: Rows, bounds: Bounds, budget_s: float) -> dict[str, float]:
    """Rows a second of 3, and ``idle_share``."""
    nothing = np.tile(np.array([VALUES, VALUES + 1]), (len(bounds), 4, 1))
    measured = partial(rate, rows, window=RATE_WINDOW, budget_s=budget_s)
    as_it_is = measured(bounds, "lazy", False)
    idle = measured(nothing, "lazy", False)
    return {
        "rows_per_s.as_it_is": as_it_is,
        "rows_per_s.idle": idle,
        "rows_per_s.psoup_c": measured(bounds, "eager", True),
        "idle_share": as_it_is / idle,
    }
