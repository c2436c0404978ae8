"""Streams that keep what they promise, which tests of joins that let go of rows share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from engine.engine import Engine
from engine.model.batch import Batch
from tests.capacities import small_engine

Row = tuple[int, int, int, int]
"""id, key, v, ts. Orders have a key of their own, that of others is the id of a row of the stream above."""


@dataclass(frozen=True)
class World:
    """Orders o, fulfilments f of them, payments p of those; l and m are ordered by their keys.

    late: a partner may come so many rows of its stream late. apart: between rows of one key come at most so
    many others, and so many rows later keys do not fall.
    """

    rows: dict[str, list[Row]]
    late: int
    apart: int

    def engine(self) -> Engine:
        engine = small_engine()
        for name, above in (("o", None), ("f", "o"), ("p", "f")):
            clauses = ", CONSTRAINT UNIQUE (id)"
            if above is not None:
                clauses += f", CONSTRAINT CLUSTERED (k) WITHIN {self.apart} ROWS"
                clauses += f", CONSTRAINT REFERENCES (k) TO {above} (id) WITHIN {self.late} ROWS"
            engine.create(
                f"CREATE STREAM {name} (id BIGINT NOT NULL, k BIGINT, v BIGINT, ts TIMESTAMP{clauses}) "
                "WITH (timestamp = 'ts', future_max = '1000 DAYS') RETAIN 3 MILLISECONDS"
            )
        for name in "lm":
            clause = f", CONSTRAINT ORDERED (k) WITHIN {self.apart} ROWS"
            engine.create(
                f"CREATE STREAM {name} (id BIGINT NOT NULL, k BIGINT NOT NULL, v BIGINT, ts TIMESTAMP"
                f"{clause}) "
                "WITH (timestamp = 'ts', future_max = '1000 DAYS') RETAIN 3 MILLISECONDS"
            )
        return engine


def keeps_apart(rows: Sequence[Row], apart: int) -> list[Row]:
    """Those rows that leave the others clustered by their keys."""
    kept: list[Row] = []
    for row in rows:
        first = next((place for place, other in enumerate(kept) if other[1] == row[1]), None)
        if first is None or sum(other[1] != row[1] for other in kept[first:]) <= apart:
            kept.append(row)
    return kept


def keeps_order(rows: Sequence[Row], apart: int) -> list[Row]:
    """Those rows that are at or above all that are more than so many rows before them."""
    kept: list[Row] = []
    for row in rows:
        if all(other[1] <= row[1] for other in kept[: max(0, len(kept) - apart)]):
            kept.append(row)
    return kept


def referring(rows: Sequence[Row], targets: Sequence[Row], late: int) -> list[Row]:
    """Those rows whose target is there, or comes among the next rows."""
    kept = []
    for row in rows:
        known = sum(ts <= row[3] for *_, ts in targets)
        if any(target[0] == row[1] for target in targets[: known + late]):
            kept.append(row)
    return kept


@st.composite
def streams(draw: st.DrawFn) -> World:
    late, apart = draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 1, 3]))
    steps = draw(
        st.lists(st.tuples(st.sampled_from("offpplm"), st.integers(0, 3), st.integers(0, 2)), max_size=60)
    )
    return _world(late, apart, [(name, back, gap * (1 if back else 3)) for name, back, gap in steps])


def dense_world(seed: int, rows: int) -> World:
    """Up to so many rows, several in a ms."""
    rng = random.Random(seed)
    steps = [(rng.choice("ooffpplm"), rng.randrange(4), rng.choice([0, 0, 1, 2])) for _ in range(rows)]
    return _world(rng.randrange(4), rng.choice([0, 0, 1, 3]), steps)


def _world(late: int, apart: int, steps: Sequence[tuple[str, int, int]]) -> World:
    """Of each step the stream, how far behind the newest its key is, and the ms since the one before it."""
    rows: dict[str, list[Row]] = {"o": [], "f": [], "p": [], "l": [], "m": []}
    above = {"o": "o", "f": "o", "p": "f", "l": "m", "m": "l"}
    ts = 0
    for name, back, gap in steps:
        ts += gap
        key = max(0, len(rows[above[name]]) - back)
        rows[name].append((len(rows[name]), key, len(rows[name]) % 3, ts))
    orders = rows["o"]
    fulfilments = keeps_apart(referring(rows["f"], orders, late), apart)
    payments = keeps_apart(referring(rows["p"], fulfilments, late), apart)
    ordered = {name: keeps_order(rows[name], apart) for name in "lm"}
    return World({"o": orders, "f": fulfilments, "p": payments, **ordered}, late, apart)


def batch(engine: Engine, name: str, rows: Sequence[Row], first: int) -> Batch:
    columns = dict(zip(("id", "k", "v", "ts"), zip(*rows, strict=True), strict=True))
    types = [pa.int64(), pa.int64(), pa.int64(), pa.timestamp("ms")]
    table = pa.table({key: pa.array(columns[key], type_) for key, type_ in zip(columns, types, strict=True)})
    n = len(rows)
    schema = engine.catalogue[name].schema
    return Batch.from_arrow(schema, table, np.zeros(n), np.arange(first, first + n), columns["ts"])
