"""Rows go once they are not needed, and what went is all that could go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.model.batch import Batch
from engine.model.limits import Limits
from tests.capacities import small_engine

STAMPS = [1, 2, 2, 2, 3, 50]


@pytest.mark.parametrize(("held_rows_max", "kept"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 4)])
def test_an_instant_in_which_rows_are_too_many_goes_whole(held_rows_max: int, kept: int) -> None:
    """The join lags, as ``b`` does, and holds rows of ``a`` back, as many as may be held; the newest
    row is not visible yet.
    """
    engine = small_engine(Limits(held_rows_max=held_rows_max))
    for name in ("a", "b"):
        engine.create(
            f"CREATE STREAM {name} (k INTEGER, ts TIMESTAMP) WITH (timestamp = 'ts') RETAIN 1 MILLISECOND"
        )
    engine.register("q", "SELECT a.k FROM a JOIN b ON a.k = b.k")
    for name, stamps in (("b", [4]), ("a", STAMPS)):
        rows = pa.table({"k": pa.nulls(len(stamps), pa.int32()), "ts": pa.array(stamps, pa.timestamp("ms"))})
        places = np.arange(len(stamps))
        batch = Batch.from_arrow(engine.catalogue[name].schema, rows, np.zeros(len(stamps)), places, stamps)
        engine.ingest(name, batch, 1_000)
    engine._check()  # asked again, retention lets nothing more go
    assert {one.name: one.rows for one in engine.view().sources()}["a"] == kept
