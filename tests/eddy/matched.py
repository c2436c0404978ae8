"""A Query SteM alone, its predicates and rows, and what each predicate says of each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.language.evaluate import truth
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.model.batch import Batch
from engine.model.expressions import Expression
from engine.stems.query_stem import QueryStem
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.segment_bits import Matrix
from tests.capacities import small_engine

BASE = "CREATE STREAM s (a INTEGER, b INTEGER, c DOUBLE, t STRING, ts TIMESTAMP)"


def rows(seed: int, n: int, high: int = 100) -> pa.Table:
    """Values 0 .. high - 1, one in twelve NULL."""
    rng = np.random.default_rng(seed)

    def some(values: np.ndarray, type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_, mask=rng.random(n) < 1 / 12)

    return pa.table(
        {
            "a": some(rng.integers(0, high, n), pa.int32()),
            "b": some(rng.integers(0, high, n), pa.int32()),
            "c": some(rng.random(n) * high, pa.float64()),
            "t": some(np.array(["", "a", "ab", "b", "c"], object)[rng.integers(0, 5, n)], pa.string()),
            "ts": pa.array(np.arange(n), pa.timestamp("ms")),
        }
    )


class Matched:
    """One Query SteM of `create`, its predicates given as texts."""

    def __init__(
        self, texts: Sequence[str], create: str = BASE, functions: FunctionCatalogue = BUILT_IN
    ) -> None:
        self.binder = small_engine(functions=functions)
        self.binder.create(create)
        self.schema = self.binder.catalogue["s"].schema
        self.stem = QueryStem(self.schema)
        self.predicates: list[Expression] = []
        for text in texts:
            predicate = self.binder.prepare(f"SELECT ts FROM s WHERE {text}").scan.predicate
            assert predicate is not None
            self.predicates.append(predicate)
        self.slots = self.stem.add(self.predicates).slots
        self._offset = 0

    def batch(self, table: pa.Table) -> Batch:
        n = table.num_rows
        self._offset += n
        numbers = np.arange(self._offset - n, self._offset)
        return Batch.from_arrow(self.schema, table, np.zeros(n), numbers, numbers)

    def kept(self, batch: Batch) -> tuple[bytes, bytes, bytes, list[int]]:
        """(bits, rows and slots of pairs, errors) as they are kept: quick to compare."""
        before = self.stem.slots.errors.copy()
        out = np.zeros((self.stem.words, len(batch)), np.uint64)
        pairs = self.stem.match(batch, Matrix(out), 0)
        errors = (self.stem.slots.errors - before).tolist()
        return out.tobytes(), pairs.rows.tobytes(), pairs.slots.tobytes(), errors

    def match(self, batch: Batch) -> tuple[dict[int, list[int]], list[int]]:
        """(rows of each slot, its errors in this batch)."""
        before = self.stem.slots.errors.copy()
        out = np.full((self.stem.words, len(batch) + 3), 2**64 - 1, np.uint64)
        pairs = self.stem.match(batch, Matrix(out), 2)
        assert (out[:, :2] == 2**64 - 1).all()
        assert (out[:, 2 + len(batch) :] == 2**64 - 1).all()
        found = {}
        for slot in set(self.slots):
            place = self.stem.cohorts.of(slot)
            if place == SELECTIVE:
                found[slot] = pairs.rows[pairs.slots == slot].tolist()
            else:
                bits = out[place >> 6, 2 : 2 + len(batch)] >> np.uint64(place & 63) & np.uint64(1)
                found[slot] = np.flatnonzero(bits).tolist()
        return found, (self.stem.slots.errors - before).tolist()

    def expected(self, batch: Batch) -> dict[int, list[int]]:
        """What the predicates say, evaluated alone."""
        said = {}
        for slot, predicate in zip(self.slots, self.predicates, strict=True):
            true, _ = truth(predicate, batch.columns, len(batch))
            said[slot] = np.flatnonzero(true).tolist()
        return said
