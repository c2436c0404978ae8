"""Joins, GROUP BY and DISTINCT by a key that is a string, beside the same by its number.

GROUP BY and DISTINCT are measured by the time that an answer from a view takes of which nothing was asked,
joins by that of steps that bring rows to both sides of a standing one. What is asked is the same for both but
for the type of the key.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from benchmarks.timing import Timing, repeat
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import BIGINT, INTEGER, STRING, TIMESTAMP, Type

REPEATS = 5
VALUES = 1_000
ANSWERS = {
    "group_by": "SELECT key, COUNT(*) AS n, SUM(value) AS total FROM a GROUP BY key",
    "distinct": "SELECT DISTINCT key FROM a",
}
JOIN = f"SELECT a.key, a.value, b.value AS other FROM a JOIN b ON a.key = b.key WHERE a.value > {VALUES - 50}"


def ratios(rows: int, keys: int, seed: int) -> dict[str, float]:
    """By what is asked: how fast it is by strings, by integers being 1."""
    seconds, sizes = {}, {}
    for type_ in (STRING, BIGINT):
        bench = _Bench(type_, rows, keys, seed)
        seconds[type_] = bench.seconds()
        sizes[type_] = bench.sizes()
    if sizes[STRING] != sizes[BIGINT]:
        raise RuntimeError(f"by strings there are {sizes[STRING]} rows, by integers {sizes[BIGINT]}")
    return {name: seconds[BIGINT][name] / seconds[STRING][name] for name in seconds[STRING]}


class _Bench:
    """One engine with two streams, each of ``rows`` rows."""

    def __init__(self, type_: Type, rows: int, keys: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._type = type_
        self._schema = Schema(
            (Field("key", type_), Field("value", INTEGER), Field("ts", TIMESTAMP, nullable=False))
        )
        self._texts = np.array([f"customer-{number:06d}" for number in range(keys)], object)
        self._keys = {name: rng.integers(0, keys, rows) for name in "ab"}
        self._value = rng.integers(0, VALUES, rows, np.int32)
        self._engine = Engine()
        for name in "ab":
            self._engine.create(
                f"CREATE STREAM {name} (key {type_.kind.value}, value INTEGER, ts TIMESTAMP NOT NULL) WITH "
                f"(topic='{name}', timestamp='ts') RETAIN {rows} MILLISECONDS"
            )
        for name, sql in (ANSWERS | {"join": JOIN}).items():
            self._engine.register(name, sql)

    def seconds(self) -> dict[str, float]:
        """The median time of a step with the join, and of each answer."""
        steps = []
        for first in range(0, len(self._value), BATCH_ROWS_MAX):
            batches = [(name, self._decoded(name, first)) for name in "ab"]
            began = time.perf_counter()
            for name, (keys, places) in batches:
                self._engine.ingest(name, self._batch(keys, places), len(self._value))
            steps.append(time.perf_counter() - began)
        found = {"join": Timing(tuple(steps[len(steps) // 2 :])).median_s}
        for name in ANSWERS:
            found[name] = repeat(
                lambda name=name: self._engine.view().snapshot(name), times=REPEATS, prepare=self._one_more
            ).median_s
        return found

    def sizes(self) -> dict[str, int]:
        """How many rows each answer has."""
        view = self._engine.view()
        return {name: view.snapshot(name).table.num_rows for name in (*ANSWERS, "join")}

    def _decoded(self, name: str, first: int) -> tuple[pa.Array, slice]:
        """The keys of some rows as decoding gives them, and which rows they are."""
        places = slice(first, min(first + BATCH_ROWS_MAX, len(self._value)))
        key = self._keys[name][places]
        return pa.array(self._texts[key] if self._type is STRING else key, self._type.arrow), places

    def _batch(self, keys: pa.Array, places: slice) -> Batch:
        stamps = np.arange(places.start, places.stop)
        return Batch(
            self._schema,
            (
                Column.decoded(self._type, keys),
                Column(INTEGER, self._value[places]),
                Column(TIMESTAMP, stamps),
            ),
            np.zeros(len(stamps), np.int32),
            stamps,
            stamps,
        )

    def _one_more(self) -> None:
        """A row beyond the last, so that the next view is a new one."""
        last = len(self._value)
        self._value = np.append(self._value, np.int32(0))
        self._keys["a"] = np.append(self._keys["a"], 0)
        keys, _ = self._decoded("a", last)
        self._engine.ingest("a", self._batch(keys, slice(last, last + 1)), last)
