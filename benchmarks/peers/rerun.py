"""DuckDB beside standing queries: every query runs again over each batch of rows.

What one does without a continuous engine: gather rows, then ask. A batch is as large as Tureen's, lies in an
in-memory table, and each query fetches its rows of the batch as Arrow; one thread, as Tureen has one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.peers.missing import PeerMissing
from benchmarks.psoup import COLUMNS, Bounds, text

LOOK = 32


@dataclass(frozen=True, slots=True)
class Rerun:
    """counts: int64[queries], rows of each answer over the batch."""

    rows: int
    seconds: float
    counts: npt.NDArray[np.int64]

    @property
    def rows_per_s(self) -> float:
        """Rows a second of one batch, with all queries run over it."""
        return self.rows / self.seconds


def rerun(values: npt.NDArray[np.int32], bounds: Bounds, seconds: float) -> Rerun:
    """Run every query over these rows, once to warm up where there is time, then once timed.

    values: int32[4, rows], one batch. Raises PeerMissing where one sweep would take longer than `seconds`.
    """
    database = duckdb.connect(config={"threads": 1})
    arriving = pa.table(dict(zip(COLUMNS, values, strict=True)))
    database.register("arriving", arriving)
    database.execute("CREATE TABLE psoup AS SELECT * FROM arriving")
    texts = [text(one) for one in bounds]
    for sql in texts[:LOOK]:
        database.sql(sql).to_arrow_table()
    began = time.perf_counter()
    for sql in texts[:LOOK]:
        database.sql(sql).to_arrow_table()
    expected_s = (time.perf_counter() - began) / min(LOOK, len(texts)) * len(texts)
    if expected_s > seconds:
        raise PeerMissing(f"DuckDB would take {expected_s:.0f} s for one batch, {seconds:.0f} s are granted")
    sweeps = []
    for _ in range(max(1, min(5, int(seconds / expected_s)))):
        began = time.perf_counter()
        counts = [database.sql(sql).to_arrow_table().num_rows for sql in texts]
        sweeps.append(time.perf_counter() - began)
    return Rerun(values.shape[1], sorted(sweeps)[len(sweeps) // 2], np.array(counts))
