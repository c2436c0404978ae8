"""Rows a second through standing joins of two streams or more, composites kept, in the engine alone.

Windows hold the last 10,000 rows of each stream. Keys are uniform over 1,000 values, so that a row meets 10
partners in the other window (`--ways 3`: 100 pairs of them in the other two); each query has an interval
predicate on each stream with probability 0.7. Rows come in batches of 8,192 to each stream in turn, in event
time. Each is matched with the predicates of all queries, put into the index by its key, and probes the other
index once for all of them; every combination that a query wants is kept as the ordinals of its parts, from
which any query's answer is read. Rows are made before the clock starts, the queries are registered in one
step. How many combinations were found is checked with numpy, and the answers of sampled queries are.

The paper (CACQ, section 5; PSoup, VLDB 2002, section 5) shares SteMs among queries that join the same
streams, so that a probe is made once and not once a query; it gives no figure for this workload.

Beside it, on the same rows, Esper 9 in its best form: named windows of each stream's last rows, which all
queries share. Its counts of matches are checked with numpy and its answers are compared with this engine's.
`--no-peers` leaves it out.

`--selective`, of two streams: the same queries, each with an interval of 0..255 on both, over rows of 50
times as many values, so that all together want 2% of the rows (:mod:`benchmarks.selective_joins`). A row that
no query wants is in no index and does not probe, and a combination that no query wants as a whole is not kept
(CACQ, section 3.1: lineage). Beside it, in turn, the same queries over the same rows, whose values are all
among those 256.

Figures: `rows_per_s.q<queries>`, rows of all streams, the median over timed stretches; `spread.q<queries>`,
the distance of the quartiles as a share of it; `register_s.q<queries>`; `composites_per_row.q<queries>`;
`matches_per_row.q<queries>`, over all queries; `answer_ms.q<queries>`, one query's answer, the median of the
sampled; `composites_bytes.q<queries>`; `esper_rows_per_s.q<queries>`, `ratio_to_esper.q<queries>`,
`esper_deploy_s.q<queries>`. With `--selective`: `rows_per_s.q<queries>`, `spread.q<queries>`;
`wanted_rows_per_s.q<queries>`, where rows are all wanted, and `ratio_to_wanted.q<queries>`. Counted, and held
against numpy: `indexed_share.q<queries>`, of the rows those that were put into an index,
`probing_share.q<queries>`, those that looked for partners, `kept_share.q<queries>`, of the combinations of
rows that are wanted those that were kept.
"""

import argparse
import contextlib
import sys
import time
from statistics import median

import numpy as np

from benchmarks import joined, psoup, selective_joins
from benchmarks.joined import Rows
from benchmarks.numbers import Numbers
from benchmarks.peers.esper.joins import HARNESS, run_joins
from benchmarks.peers.esper.process import Esper
from benchmarks.peers.missing import PeerMissing
from benchmarks.psoup import Bounds
from benchmarks.report import Figure, Plot, Report, Series
from engine.engine import Engine
from engine.model.limits import Limits

CHECKED_QUERIES = 40
ESPER_QUERIES_MAX = 2_000
"""Beyond, Esper needs minutes for a handful of rows."""
ESPER_LOOKED = 8
ESPER_COUNTED = 200

ROOM = Limits(snapshot_rows_max=100_000_000)
"""Three streams make millions of combinations."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries",
        action=Numbers,
        nargs="+",
        default=[1, 10, 100, 1_000, 10_000],
        help="how many stand (default: %(default)s)",
    )
    parser.add_argument("--ways", type=int, default=2, choices=range(2, 9), help="streams (default: 2)")
    parser.add_argument("--window", type=int, default=10_000, help="rows of each (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=1_000, help="distinct ones (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="timed rows (default: %(default)s)")
    parser.add_argument("--selective", action="store_true", help="2%% of the rows are wanted, all together")
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="Esper beside it"
    )
    parser.add_argument(
        "--peer-seconds", type=float, default=2.0, help="of a pass of Esper (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """Measure each number of queries in an engine of its own."""
    if options.selective:
        return selective_joins.report(options)
    rng = np.random.default_rng(options.seed)
    ways, window = options.ways, options.window
    warm_up, stretch = joined.lengths(options.rows, ways, window)
    rows = joined.make_rows(rng, warm_up + joined.STRETCHES * stretch, ways, options.keys)
    figures: dict[str, Figure] = {}
    rates, others = [], {}
    with contextlib.ExitStack() as stack:
        esper = _esper(stack) if options.peers else None
        for queries in options.queries:
            bounds = joined.make_bounds(rng, queries, ways)
            engine = joined.create(ways, ROOM)
            timing, register_s = joined.measure(engine, rows, bounds, window, warm_up, stretch)
            rates.append(timing.per_s(stretch))
            figures[f"rows_per_s.q{queries}"] = rates[-1]
            figures[f"spread.q{queries}"] = timing.spread
            figures[f"register_s.q{queries}"] = register_s
            print(f"{queries:,} queries: {rates[-1]:,.0f} rows/s", file=sys.stderr)
            checked = check(engine, rows, bounds, window)
            figures |= {f"{key}.q{queries}": value for key, value in checked.items()}
            del engine
            if esper is not None and queries <= ESPER_QUERIES_MAX:
                rate, deploy_s = beside(esper, rows, bounds, window, options.peer_seconds)
                others[queries] = rate
                figures[f"esper_rows_per_s.q{queries}"] = rate
                figures[f"ratio_to_esper.q{queries}"] = rates[-1] / rate
                figures[f"esper_deploy_s.q{queries}"] = deploy_s
                print(f"{queries:,} queries: Esper {rate:,.0f} rows/s, counts equal", file=sys.stderr)
    curves = [Series("Tureen", options.queries, rates)]
    if others:
        curves.append(Series("Esper 9", list(others), list(others.values())))
    return Report(figures, Plot("standing queries", "rows/s", curves, log=True))


def check(engine: Engine, rows: Rows, bounds: Bounds, window: int) -> dict[str, Figure]:
    """Compare what was found, and answers of some queries, with numpy. Raises RuntimeError."""
    (told,) = [values for module, values in engine.stats().items() if module.startswith("join/")]
    everything = np.tile([0, joined.VALUES], (rows.ways, 1))
    combinations = joined.entering(rows, everything, window, 0)
    composites = int(told["composites_found"] or 0)
    least = combinations  # all of them where a query has no predicate, else those of one query
    if not (bounds == everything).all(axis=(1, 2)).any():
        least = joined.entering(rows, bounds[0], window, 0)
    if not least <= composites <= combinations:
        raise RuntimeError(f"{composites} combinations were kept, numpy {least} to {combinations}")
    view = engine.view()
    seconds = []
    for place in range(0, len(bounds), max(1, len(bounds) // CHECKED_QUERIES)):
        expected = joined.held(rows, bounds[place], window)
        began = time.perf_counter()
        found = view.snapshot(f"q{place}").table.num_rows
        seconds.append(time.perf_counter() - began)
        if found != expected:
            raise RuntimeError(f"query {place} has {found} rows, numpy {expected}")
    pass_rates = (bounds[:, :, 1] - bounds[:, :, 0]) / joined.VALUES
    per_row = combinations / len(rows)
    return {
        "composites_per_row": composites / len(rows),
        "matches_per_row": per_row * float(pass_rates.prod(axis=1).sum()),
        "answer_ms": 1_000 * median(seconds),
        "composites_bytes": int(told["composites_bytes"] or 0),
    }


def _esper(stack: contextlib.ExitStack) -> Esper | None:
    try:
        esper = Esper(HARNESS)
    except PeerMissing as missing:
        print(f"Esper is left out: {missing}", file=sys.stderr)
        return None
    stack.callback(esper.close)
    return esper


def beside(esper: Esper, rows: Rows, bounds: Bounds, window: int, seconds: float) -> tuple[float, float]:
    """(rows a second of Esper, seconds to deploy); its counts are checked. Raises RuntimeError."""
    done = run_joins(esper, rows, bounds, window, seconds, ESPER_LOOKED)
    stop = done.begin + done.rows
    first = max(0, done.begin - 2 * rows.ways * window)
    first -= first % rows.ways
    seen = rows.take(np.arange(first, stop) % len(rows))
    for place in range(0, len(bounds), max(1, len(bounds) // ESPER_COUNTED)):
        expected = joined.entering(seen, bounds[place], window, done.begin - first)
        if done.counts[place] != expected:
            raise RuntimeError(f"query {place}: Esper {done.counts[place]} matches, numpy {expected}")
    last = seen.take(np.arange(len(seen) - len(seen) % rows.ways)[-2 * rows.ways * window :])
    if len(last) == len(seen) or len(seen) % rows.ways == 0:
        compare(done.answers.tolist(), last, bounds, window)
    return done.rows_per_s, done.deploy_s


def compare(answers: list[int], rows: Rows, bounds: Bounds, window: int) -> None:
    """Raises RuntimeError unless this engine holds as many combinations after the same rows."""
    engine = joined.create(rows.ways, ROOM)
    psoup.register(engine, (joined.text(one, window, "COUNT(*)") for one in bounds[: len(answers)]))
    joined.ingest(engine, rows.steps(), len(rows))
    joined.close(engine, rows)
    view = engine.view()
    mine = [view.snapshot(f"q{place}").table.column(0)[0].as_py() for place in range(len(answers))]
    if mine != answers:
        raise RuntimeError(f"answers differ: Esper {answers}, Tureen {mine}")
