"""PSoup's figure 7: response time of selections against the window, for NoMat, PSoup-P and PSoup-C.

Queries with one to four factors, equalities (figure 7a) and intervals (7b), over windows of 128 to 65,536
rows, one row a millisecond; as many rows are retained as the largest window has. One engine a system, the
queries of all windows in it, registered before the last batches come. Each system's answers are compared with
the others'.

In the paper NoMat is far slower than the two others, by one to two orders of magnitude, and grows with the
window; for equalities PSoup-P is two orders slower than PSoup-C, since it goes over an array of bits as long
as the largest window whatever the answer, and as slow as for intervals; for intervals the two are alike.

Here the order of the three agrees, that NoMat grows with the window, that PSoup-P is more than an order
slower than PSoup-C for equalities, and that it depends less on the answer than on the window. It does not
agree that NoMat is orders behind PSoup-P: evaluating a predicate over 65,536 values takes a tenth of a
millisecond, about as much as the fixed cost of answering. Nor does PSoup-C grow with its answers, which are
handed over as they are; so for intervals it stays ahead.

Figures: `response_ms.<equality or interval>.<nomat, psoup_p or psoup_c>.w<rows>`, for one query.
"""

import argparse

import numpy as np

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.paper import SYSTEMS, curves, equalities, intervals, respond, tell
from benchmarks.psoup import Bounds, Rows
from benchmarks.report import Figure, Plot, Report
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX
from engine.model.step import Register, Registration

KINDS = {"equality": equalities, "interval": intervals}
FACTORS_MAX = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--windows",
        action=Numbers,
        nargs="+",
        default=[2**n for n in range(7, 17)],
        help="rows of each (default: %(default)s)",
    )
    parser.add_argument(
        "--queries", type=int, default=32, help="of each window and kind (default: %(default)s)"
    )
    parser.add_argument("--times", type=int, default=7, help="sweeps over them (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Both kinds, in engines of their own."""
    rng = np.random.default_rng(options.seed)
    retained = max(options.windows)
    rows = psoup.make_rows(rng, retained + 2 * BATCH_ROWS_MAX, per_ms=1)
    figures: dict[str, Figure] = {}
    series = []
    for kind, draw in KINDS.items():
        bounds = draw(rng, rng.integers(1, FACTORS_MAX + 1, options.queries).tolist())
        engines = {s: standing(rows, retained, bounds, options.windows, m) for s, m in SYSTEMS.items()}
        points = {}
        for window in options.windows:
            names = [f"w{window}q{n}" for n in range(len(bounds))]
            points[window] = respond(engines, names, options.times)
            tell(f"{kind}, {window:,} rows", points[window])
            figures |= {f"response_ms.{kind}.{s}.w{window}": ms for s, ms in points[window].items()}
        series += curves(points, f", {kind}")
    return Report(figures, Plot("rows of the window", "ms a query", series, log=True))


def standing(rows: Rows, retained: int, bounds: Bounds, windows: list[int], mode: str) -> Engine:
    """An engine at the end of the rows, with each query standing over each window in this mode."""
    engine = psoup.create(retained)
    registrations = tuple(
        Registration(
            f"w{window}q{n}",
            psoup.text(one, window=f"[RANGE {window - 1} MILLISECONDS]"),
            options={"maintenance": mode},
        )
        for window in windows
        for n, one in enumerate(bounds)
    )
    batches = rows.batches()
    clock_ms = int(rows.timestamp[-1])
    for batch in batches[:-2]:
        engine.ingest("psoup", batch, clock_ms)
    psoup.apply(engine, Register(registrations))
    for batch in batches[-2:]:
        engine.ingest("psoup", batch, clock_ms)
    return engine
