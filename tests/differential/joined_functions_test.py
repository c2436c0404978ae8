"""Users' functions beside a join: called before it, after it, as costs say, now so and then so.

The queries of a world join two streams, or a stream and a table, and ask users' functions about single rows
of either. Where the functions are called may change from step to step, and changes no answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.language.evaluate import truth
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.batch import Batch
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import Step
from engine.model.user_calls import FunctionMeter
from engine.reference import Reference
from engine.stems.postponing import PLACEMENTS
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.differential.joined_windows import compare
from tests.memory_state import MemoryState
from tests.sql_strategies import Writer
from tests.strategies import examples
from tests.worlds import eventful_worlds
from tureen.errors import UnknownEntity

LIMITS = Limits(superseded_rows_max=0)
WINDOWS = ("", " [ROWS 6]", " [RANGE 40 MILLISECONDS]", " [ROWS 2]")


class Ticks:
    """A clock by which each call takes long."""

    def __init__(self, step_ns: int = 1_000_000) -> None:
        self.now, self.step_ns = 0, step_ns

    def __call__(self) -> int:
        self.now += self.step_ns
        return self.now


def catalogue() -> FunctionCatalogue:
    """Functions of a text of any value, which are dear by their clock. None raises."""

    def chooser(name: str, choose: Callable[[Any], bool]) -> Any:
        meter = FunctionMeter(Ticks())
        return user_function(name, ["STRING"], "BOOLEAN", choose, deterministic=True, meter=meter)

    return FunctionCatalogue(
        [
            chooser("few", lambda text: sum(text.encode()) % 4 == 0),
            chooser("most", lambda text: sum(text.encode()) % 4 != 0),
            chooser("unknown", lambda text: len(text) % 2 == 0 or None),
        ]
    )


def asking(draw: st.DrawFn, sources: Mapping[str, Stream]) -> str:
    """A join by first columns, whose conditions call functions of either side, or an aggregate of it, or a
    query over one of them with the same condition.
    """

    def pick(*choices: Any) -> Any:
        return draw(st.sampled_from(choices))

    first = next(iter(sources.values()))
    second = pick(*[stream for stream in sources.values() if stream.retroactive])

    def call(alias: str, stream: Stream) -> str:
        column = pick(*[f.name for f in stream.schema])
        return f'{pick("few", "few", "most", "unknown")}(CAST({alias}."{column}" AS STRING))'

    def condition(alias: str, stream: Stream) -> str | None:
        leaf = Writer(draw, stream.schema).leaf(0)
        for column in stream.schema:
            leaf = leaf.replace(f'"{column.name}"', f'{alias}."{column.name}"')
        called = call(alias, stream)
        return pick(
            called,
            called,
            leaf,
            None,
            f"{called} AND {leaf}",
            f"{called} AND {call(alias, stream)}",
            f'({called} OR {alias}."{stream.schema.fields[-1].name}" IS NULL)',
        )

    sides = (("x", first), ("y", second))
    if draw(st.integers(0, 9)) == 9:
        where = condition("x", first)
        return f'SELECT x."{first.schema.fields[-1].name}" AS a FROM "{first.name}" AS x' + (
            f" WHERE {where}" if where else ""
        )
    asked = [found for side in sides if (found := condition(*side))]
    one, other = (f'{alias}."{s.schema.fields[0].name}"' for alias, s in sides)
    kind = pick("JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN")
    given_ = pick(
        f'x."{first.schema.fields[-1].name}" AS a, y."{second.schema.fields[-1].name}" AS b', "COUNT(*) AS n"
    )
    where = " AND ".join(asked)
    return (
        f'SELECT {given_} FROM "{first.name}"{pick(*WINDOWS)} AS x'
        f' {kind} "{second.name}"{pick(*WINDOWS)} AS y'
        f" ON {one} = {other}{where and f' WHERE {where}'}" + pick("", "", "", " EMIT CHANGES")
    )


def assert_bits_afresh(engine: Engine) -> int:
    """Bits of conditions that call functions, of rows that do not wait, are what the conditions say now.
    Returns how many rows wait.
    """
    waiting = 0
    for source in engine._parts.sources.values():
        rows = source.rows.rows()
        waits = source.rows.owed.postponed._waiting()
        waiting += len(waits)
        for slot, predicate in source.queries.residuals._whole.items():
            for part, first, last in rows.ranges(rows.base, rows.end):
                if slot in part.matches.owed:
                    continue
                batch = part.batch(rows.schema)
                columns = LazyColumns(len(batch.columns), batch.column)
                true, _ = truth(predicate, columns, part.n)
                held = np.zeros(part.n, np.bool_)
                held[part.rows_of(slot, first, last)] = True
                mine = slice(first, last)
                wait = np.isin(part.first + np.arange(first, last), waits)
                assert (held | ~true)[mine].all()
                assert (held == true)[mine][~wait].all()
    return waiting


def place(engine: Engine, choose: Callable[[], str]) -> None:
    """Each join has its functions called where ``choose`` says."""
    for module in engine.modules():
        if module.startswith("join/"):
            engine.set_attribute(module, "placement", choose())


@settings(max_examples=examples(10))
@given(
    steps=eventful_worlds(asking, rounds=5, streams_count=2, tables_count=1),
    data=st.data(),
)
def test_no_answer_depends_on_where_functions_are_called(steps: list[Step], data: st.DataObject) -> None:
    engine = EngineSubject(small_engine(LIMITS, functions=catalogue()))
    reference = Reference(LIMITS, functions=catalogue())
    for number, step in enumerate(steps):
        place(engine.engine, lambda: data.draw(st.sampled_from(PLACEMENTS)))
        assert told(engine.apply(step)) == told(reference.apply(step))
        engine.engine._check()
        assert_bits_afresh(engine.engine)
        if number % 3 == 2:
            assert_same_answers(engine, reference, [0, 7])
        if data.draw(st.integers(0, 9)) == 9:
            followed = data.draw(st.sampled_from(engine.standing() or [""]))
            with suppress(UnknownEntity):
                if followed:
                    engine.engine.follow(followed)
    assert_same_answers(engine, reference, [0, 20])


CREATE = (
    "CREATE STREAM {} (k INTEGER, v INTEGER, ts TIMESTAMP NOT NULL)"
    " WITH (topic = '{}', timestamp = 'ts', future_max = '1 day') RETAIN 3 SECONDS"
)


def divisible() -> FunctionCatalogue:
    """Functions of numbers that a text can say without them; the meters count their calls."""

    def of(name: str, by: int) -> Any:
        meter = FunctionMeter(Ticks(200_000))
        return user_function(
            name, ["INTEGER"], "BOOLEAN", lambda v: v % by == 0, deterministic=True, meter=meter
        )

    return FunctionCatalogue([of(f"by{by}", by) for by in (2, 3, 5, 7)])


def rows(rng: np.random.Generator, start: int, count: int, share: float) -> pa.Table:
    """Few keys of one stream are among those of the other where share is small."""
    at = np.arange(start, start + count)
    keys = np.where(
        rng.random(count) < share, rng.integers(0, 300, count), 1_000 + rng.integers(0, 9_000, count)
    )
    values = pa.array(rng.integers(0, 2_000, count), pa.int32(), mask=rng.random(count) < 0.02)
    return pa.table({"k": pa.array(keys, pa.int32()), "v": values, "ts": pa.array(at, pa.timestamp("ms"))})


def query(rng: random.Random) -> str:
    window = rng.choice(["[ROWS 3000]", "[RANGE 2 SECONDS]", "[RANGE 900 MILLISECONDS]"])
    asked = [f"by{rng.choice((2, 3, 5, 7))}(a.v)"]
    if rng.random() < 0.4:
        asked.append(f"by{rng.choice((2, 3, 5, 7))}(a.v)")
    if rng.random() < 0.4:
        asked.append(f"a.v > {rng.randrange(2_000)}")
    if rng.random() < 0.3:
        asked.append(f"by{rng.choice((2, 3))}(b.v)")
    return (
        f"SELECT a.k, a.v, b.v AS w FROM one {window} AS a JOIN two {window} AS b ON a.k = b.k"
        f" WHERE {' AND '.join(asked)}"
    )


def test_hundreds_of_queries_over_thousands_of_rows() -> None:
    """DuckDB, which has no functions of ours, is asked for remainders."""
    rng, numbers = random.Random(1), np.random.default_rng(1)
    functions = divisible()
    engine = Engine(functions=functions)
    for name in ("one", "two"):
        engine.create(CREATE.format(name, name))
    schema = engine.catalogue["one"].schema
    queries: dict[str, str] = {}
    tables: dict[str, list[pa.Table]] = {"one": [], "two": []}
    clock, waiting = 1_000_000, 0
    for step in range(6):
        for _ in range(rng.choice([3, 12])):
            queries[f"q{len(queries)}-{step}"] = sql = query(rng)
            engine.register(list(queries)[-1], sql, clock)
        for query_id in rng.sample(sorted(queries), 2):
            del queries[query_id]
            engine.unregister(query_id, clock)
        for name, held in tables.items():
            place(engine, lambda: rng.choice(PLACEMENTS))
            count = rng.choice([60, 700, 1_400])
            start = sum(map(len, held))
            table = rows(numbers, start, count, 0.1 if name == "one" else 0.9)
            held.append(table)
            times = table.column("ts").cast(pa.int64()).to_numpy()
            places = np.arange(start, start + count)
            engine.ingest(name, Batch.from_arrow(schema, table, np.zeros(count), places, times), clock)
            waiting += bool(sum(len(one.rows.owed.postponed) for one in engine._parts.sources.values()))
        if step == 3:
            store = MemoryState()
            engine.save(store)
            engine = Engine.restore(store, functions=functions)
        if step == 3:
            engine._check()
            assert_bits_afresh(engine)
            compare(
                engine, told_plainly(queries), {name: pa.concat_tables(held) for name, held in tables.items()}
            )
    engine._check()
    assert waiting > 4
    compare(engine, told_plainly(queries), {name: pa.concat_tables(held) for name, held in tables.items()})


def told_plainly(queries: Mapping[str, str]) -> dict[str, str]:
    """The texts without functions."""
    return {name: re.sub(r"by(\d)\((\w\.v)\)", r"\2 % \1 = 0", sql) for name, sql in queries.items()}
