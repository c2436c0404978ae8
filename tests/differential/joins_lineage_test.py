"""Joins of which little is wanted: the engine against the reference and DuckDB, while queries come and go.

The queries of a world join two streams, or one with itself, by the same keys, and ask for few of the rows by
predicates of their own, so that they share a join whose rows and combinations mostly nobody wants.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import Step
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.differential.joined_windows import compare
from tests.memory_state import MemoryState
from tests.sql_strategies import Writer
from tests.strategies import examples
from tests.worlds import eventful_worlds

LIMITS = Limits(superseded_rows_max=0)
WINDOWS = ("", " [ROWS 6]", " [RANGE 40 MILLISECONDS]", " [ROWS 2]")


def selective(draw: st.DrawFn, sources: Mapping[str, Stream]) -> str:
    """A join of two by their first columns, of few rows of either."""

    def pick(*choices: Any) -> Any:
        return draw(st.sampled_from(choices))

    first = next(iter(sources.values()))
    second = pick(*[stream for stream in sources.values() if stream.retroactive])
    asked = []
    for alias, stream in (("x", first), ("y", second)):
        leaf = Writer(draw, stream.schema).leaf(0)
        for column in stream.schema:
            leaf = leaf.replace(f'"{column.name}"', f'{alias}."{column.name}"')
        asked.append(pick(leaf, leaf, leaf, None))
    one, other = (f'{alias}."{s.schema.fields[0].name}"' for alias, s in (("x", first), ("y", second)))
    kind = pick("JOIN", "JOIN", "JOIN", "LEFT JOIN", "FULL JOIN")
    where = " AND ".join(filter(None, asked))
    on = pick("", f' AND x."{first.schema.fields[-1].name}" IS NOT NULL')
    return (
        f'SELECT x."{first.schema.fields[-1].name}" AS a, y."{second.schema.fields[-1].name}" AS b'
        f' FROM "{first.name}"{pick(*WINDOWS)} AS x {kind} "{second.name}"{pick(*WINDOWS)} AS y'
        f" ON {one} = {other}{on}{where and f' WHERE {where}'}"
    )


@settings(max_examples=examples(8))
@given(
    steps=eventful_worlds(selective, rounds=5, streams_count=2, tables_count=1),
    data=st.data(),
)
def test_queries_that_want_little(steps: list[Step], data: st.DataObject) -> None:
    store = MemoryState()
    engine, reference = EngineSubject(small_engine(LIMITS)), Reference(LIMITS)
    for place, step in enumerate(steps):
        assert told(engine.apply(step)) == told(reference.apply(step))
        engine.engine._check()
        if place % 3 == 2:
            assert_same_answers(engine, reference, [0, 7])
        if data.draw(st.integers(0, 7)) == 7:
            engine = engine.restarted(store)
    assert_same_answers(engine, reference, [0, 20])


CREATE = (
    "CREATE STREAM {} (k STRING, v INTEGER, ts TIMESTAMP NOT NULL)"
    " WITH (topic = '{}', timestamp = 'ts', future_max = '1 day') RETAIN 3 SECONDS"
)


def rows(rng: np.random.Generator, start: int, count: int) -> pa.Table:
    """Keys come and go; now and then one is NULL."""
    at = np.arange(start, start + count)
    keys = pa.array(
        [f"key {n}" for n in (at // 4 + rng.integers(0, 300, count)).tolist()], mask=rng.random(count) < 0.02
    )
    values = pa.array(rng.integers(0, 2_000, count), pa.int32(), mask=rng.random(count) < 0.02)
    return pa.table({"k": keys, "v": values, "ts": pa.array(at, pa.timestamp("ms"))})


def query(rng: random.Random) -> str:
    low, other, wide = rng.randrange(2_000), rng.randrange(2_000), rng.choice([5, 40, 400])
    window = rng.choice(["[ROWS 3000]", "[RANGE 2 SECONDS]", "[RANGE 900 MILLISECONDS]"])
    asked = [f"a.v BETWEEN {low} AND {low + wide}", f"b.v BETWEEN {other} AND {other + 10 * wide}"]
    where = " AND ".join(rng.choice([asked, asked, asked, asked[:1]]))
    kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
    joined = f"one {window} AS a {kind} two {window} AS b ON a.k = b.k"
    return f"SELECT a.k, a.v, b.v AS w FROM {joined} WHERE {where}"


@pytest.mark.parametrize("seed", [1, 2])
def test_hundreds_of_queries_over_thousands_of_rows(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    engine = Engine()
    for name in ("one", "two"):
        engine.create(CREATE.format(name, name))
    schema = engine.catalogue["one"].schema
    queries: dict[str, str] = {}
    tables: dict[str, list[pa.Table]] = {"one": [], "two": []}
    clock = 1_000_000
    for step in range(14):
        for _ in range(rng.choice([3, 25])):
            queries[f"q{len(queries)}-{step}"] = sql = query(rng)
            engine.register(list(queries)[-1], sql, clock)
        for query_id in rng.sample(sorted(queries), 2):
            del queries[query_id]
            engine.unregister(query_id, clock)
        count = rng.choice([60, 700, 1_800])
        for name, held in tables.items():
            start = sum(map(len, held))
            table = rows(numbers, start, count)
            held.append(table)
            times = table.column("ts").cast(pa.int64()).to_numpy()
            places = np.arange(start, start + count)
            engine.ingest(name, Batch.from_arrow(schema, table, np.zeros(count), places, times), clock)
        if step == 9:
            store = MemoryState()
            engine.save(store)
            engine = Engine.restore(store)
        if step % 6 == 5:
            compare(engine, queries, {name: pa.concat_tables(held) for name, held in tables.items()})
    engine._check()
    compare(engine, queries, {name: pa.concat_tables(held) for name, held in tables.items()})
    (facts,) = [values for module, values in engine.stats().items() if module.startswith("join/")]
    assert 0 < facts["rows_wanted"] <= facts["rows_seen"]
