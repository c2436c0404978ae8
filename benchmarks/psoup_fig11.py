"""PSoup's figure 11: a join's answer by probing with all rows at once, composites kept or not, or one by one.

Queries over two streams, `(r.a OP2 s.b) AND (s.b OP3 c)`, when the rows of r are found: they are hybrid
structs now, a value in place of r.a each, and probe the rows of s. The window over r holds 2 to 10,000 rows,
that over s 10,000; values are uniform over 1,000. Named by (shared factor, factor of a row): `eq_ineq` is
`s.b = c AND r.a < s.b`, `ineq_eq` is `s.b < c AND r.a = s.b`, `ineq_ineq` is `s.b < c AND r.a < s.b`, with c
so that a hundredth of s is below it. Separate: each hybrid struct is a query of its own over s (of many, 100
are asked and the time is taken in proportion). Composite: one query, the shared factor is applied once and
all structs probe together. With an equality among r and s the combinations of rows may also be kept as rows
come: `kept` reads those, `composite` probes when it is asked. All give as many rows, which numpy counts.

In the paper the composite tuple halves the factors that are applied where the shared one is selective
(eq_ineq), and is ahead there by a factor of two; with equalities of the rows (ineq_eq) it is ahead by more,
since a sort-merge join takes the place of nested loops; between inequalities (ineq_ineq) it does not help.

Here it agrees that probing together is ahead in eq_ineq and ineq_eq, by orders and the more the larger the
window, because a query's own cost is paid once; for the same reason it is ahead in ineq_ineq as well, where
the paper prefers nested loops. Keeping the combinations (`kept`) wins nothing over a probe at once in a join
of two: the probe is as cheap as reading what was kept.

Figures: `ms.<workload>.<way>.w<rows>`, one answer, the median.
"""

import argparse
import sys
from functools import partial

import numpy as np

from benchmarks import joined, psoup
from benchmarks.joined import Rows
from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.timing import repeat
from engine.engine import Engine
from engine.views.view import View

KEYS = 1_000
WINDOW = 10_000
BELOW = 10
ASKED_MAX = 100
WORKLOADS = {
    "eq_ineq": (f"s1.k = {BELOW}", "{} < s1.k"),
    "ineq_eq": (f"s1.k < {BELOW}", "{} = s1.k"),
    "ineq_ineq": (f"s1.k < {BELOW}", "{} < s1.k"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--windows",
        action=Numbers,
        nargs="+",
        default=[2, 10, 100, 1_000, 10_000],
        help="rows of the window over r (default: %(default)s)",
    )
    parser.add_argument("--times", type=int, default=7, help="repeats (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each workload and way over all windows."""
    rng = np.random.default_rng(options.seed)
    rows = joined.make_rows(rng, 2 * WINDOW, 2, KEYS)
    figures: dict[str, Figure] = {}
    series = []
    for workload, (shared, own) in WORKLOADS.items():
        ways = ["separate", "composite", *(["kept"] if "=" in own else [])]
        curves: dict[str, list[float]] = {way: [] for way in ways}
        for window in options.windows:
            view, asked = prepare(rows, shared, own, window, kept=False)
            expected = count(rows, workload, window)
            whole = partial(ask, names=["all"], expected=expected)
            found = {"composite": repeat(partial(whole, view), times=options.times)}
            names = [f"p{place}" for place in range(asked)]
            found["separate"] = repeat(partial(ask, view, names), times=3)
            if asked == window:
                ask(view, names, expected)
            if "kept" in ways:
                view, _ = prepare(rows, shared, own, window, kept=True)
                found["kept"] = repeat(partial(whole, view), times=options.times)
            for way in ways:
                ms = found[way].median_ms * (window / asked if way == "separate" else 1)
                figures[f"ms.{workload}.{way}.w{window}"] = ms
                curves[way].append(ms)
            told = ", ".join(f"{way} {curves[way][-1]:.3f}" for way in ways)
            print(f"{workload}, {window:,} rows: {told} ms", file=sys.stderr)
        series += [Series(f"{workload} {way}", options.windows, curve) for way, curve in curves.items()]
    return Report(figures, Plot("hybrid structs", "ms", series, log=True))


def prepare(rows: Rows, shared: str, own: str, window: int, *, kept: bool) -> tuple[View, int]:
    """An engine's view of all rows, the join and some hybrid structs its queries; how many these are."""
    engine: Engine = joined.create(2)
    texts = {
        "all": f"SELECT s0.k, s1.v FROM s0 [ROWS {window}] JOIN s1 [ROWS {WINDOW}] ON "
        f"{own.format('s0.k')} AND {shared}"
    }
    probing = rows.k[0::2][-window:][:ASKED_MAX].tolist()
    for place, value in enumerate(probing):
        texts[f"p{place}"] = f"SELECT v FROM s1 [ROWS {WINDOW}] WHERE {own.format(value)} AND {shared}"
    psoup.register_named(engine, texts, {"maintenance": "lazy" if kept else "none"})
    joined.ingest(engine, rows.steps(), len(rows))
    joined.close(engine, rows)
    return engine.view(), len(probing)


def ask(view: View, names: list[str], expected: int | None = None) -> None:
    """Fetch each answer once. Raises RuntimeError unless they have as many rows as expected."""
    found = sum(view.snapshot(name).table.num_rows for name in names)
    if expected is not None and found != expected:
        raise RuntimeError(f"{names[0]} has {found} rows, numpy {expected}")


def count(rows: Rows, workload: str, window: int) -> int:
    """How many rows the join has."""
    r, s = rows.k[0::2][-window:, None], rows.k[1::2][-WINDOW:]
    s = s[s == BELOW] if workload == "eq_ineq" else s[s < BELOW]
    return int(((r == s) if workload == "ineq_eq" else (r < s)).sum())
