"""Esper and DuckDB beside `selections`: the same rows, the same queries, equal counts.

Each gets a budget of time for each number of queries; where it would need more, or is missing, the figures go
without it and a line on standard error says why. Its counts of matches, of every query, must be the counts
that Tureen gives over the same rows.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks import psoup
from benchmarks.peers.esper.process import Esper
from benchmarks.peers.missing import PeerMissing
from benchmarks.peers.rerun import rerun
from benchmarks.psoup import Bounds, Rows
from benchmarks.report import Figure, Series
from engine.model.batch import BATCH_ROWS_MAX

ESPER_QUERIES_MAX = 20_000
"""Esper deploys some 700 queries a second and sends a listener each match: beyond, minutes for few rows."""
HEAP_QUERIES_MIN = 1_000
"""With fewer, what Esper loads for the first of them hides what one takes."""
RERUN_S = 30.0


class Peers:
    """The peers that run here. Use as a context; add each number of queries; then take the series."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._esper: Esper | None = None
        self._curves: dict[str, dict[int, float]] = {"Esper 9": {}, "DuckDB, run again": {}}

    @contextlib.contextmanager
    def running(self) -> Iterator[Peers]:
        """Compile what must be compiled; tell what is missing."""
        try:
            self._esper = Esper()
        except PeerMissing as missing:
            tell(f"Esper is left out: {missing}")
        try:
            yield self
        finally:
            if self._esper is not None:
                self._esper.close()

    def measure(self, rows: Rows, bounds: Bounds, rows_per_s: float) -> dict[str, Figure]:
        """Both on these rows and queries; the figures, beside Tureen's `rows_per_s`."""
        return self._beside_esper(rows, bounds, rows_per_s) | self._beside_duckdb(rows, bounds, rows_per_s)

    def series(self) -> list[Series]:
        """Curves of the peers that gave a figure."""
        return [Series(name, list(c), list(c.values())) for name, c in self._curves.items() if c]

    def _beside_esper(self, rows: Rows, bounds: Bounds, rows_per_s: float) -> dict[str, Figure]:
        queries = len(bounds)
        if self._esper is None:
            return {}
        if queries > ESPER_QUERIES_MAX:
            tell(f"Esper is left out at {queries:,} queries: it would take minutes to deploy them")
            return {}
        run = self._esper.run(rows.values, bounds, self._seconds)
        compare("Esper", run.counts, rows.first(run.rows), bounds)
        self._curves["Esper 9"][queries] = run.rows_per_s
        tell(f"{queries:,} queries: Esper {run.rows_per_s:,.0f} rows/s, counts of {run.rows:,} rows equal")
        figures: dict[str, Figure] = {
            f"esper_rows_per_s.q{queries}": run.rows_per_s,
            f"ratio_to_esper.q{queries}": rows_per_s / run.rows_per_s,
            f"esper_handed_over_per_s.q{queries}": float(run.counts.sum()) / run.pass_s,
            f"esper_deploy_s.q{queries}": run.deploy_s,
        }
        if queries >= HEAP_QUERIES_MIN:
            figures[f"esper_bytes_per_query.q{queries}"] = run.heap_bytes / queries
        return figures

    def _beside_duckdb(self, rows: Rows, bounds: Bounds, rows_per_s: float) -> dict[str, Figure]:
        queries = len(bounds)
        batch = rows.first(BATCH_ROWS_MAX)
        try:
            run = rerun(batch.values, bounds, RERUN_S)
        except PeerMissing as missing:
            tell(f"DuckDB is left out at {queries:,} queries: {missing}")
            return {}
        compare("DuckDB", run.counts, batch, bounds)
        self._curves["DuckDB, run again"][queries] = run.rows_per_s
        tell(f"{queries:,} queries: DuckDB {run.rows_per_s:,.0f} rows/s, counts of {len(batch):,} rows equal")
        return {
            f"duckdb_rows_per_s.q{queries}": run.rows_per_s,
            f"ratio_to_duckdb.q{queries}": rows_per_s / run.rows_per_s,
        }


def compare(peer: str, counts: npt.NDArray[np.int64], rows: Rows, bounds: Bounds) -> None:
    """Raises RuntimeError unless Tureen counts the same matches of the rows, query by query."""
    engine = psoup.create(int(rows.timestamp[-1]) + 1)
    psoup.register(engine, (psoup.text(one, "COUNT(*)") for one in bounds))
    psoup.fill(engine, rows)
    view = engine.view()
    mine = np.array([view.snapshot(f"q{n}").table.column(0)[0].as_py() for n in range(len(bounds))])
    wrong = np.flatnonzero(mine != counts)
    if len(wrong):
        place = int(wrong[0])
        raise RuntimeError(
            f"{len(wrong)} counts differ, as q{place}: {peer} {counts[place]}, Tureen {mine[place]}"
        )


def tell(line: str) -> None:
    """For whoever watches."""
    print(line, file=sys.stderr)
