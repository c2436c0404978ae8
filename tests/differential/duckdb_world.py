"""A random world that tests against DuckDB share: two streams and a table of whole numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch, versions
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import CreateSource, Heartbeat, Records, Register, Registration
from engine.reference import Reference
from tests.differential.agreement import EngineSubject, exact_rows, plain_rows
from tests.differential.duckdb_selects import Row, assert_same_bag

COLUMNS = ("k", "v", "w")
SOURCES = {
    "s": "CREATE STREAM s (k INTEGER, v INTEGER, w INTEGER) WITH (topic = 's')",
    "u": "CREATE STREAM u (k INTEGER, v INTEGER, w INTEGER) WITH (topic = 'u')",
    "t": "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, w INTEGER) WITH (topic = 't')",
}
SCHEMA = pa.schema([(name, pa.int32()) for name in COLUMNS])


class World:
    """The same rows in the engine, in the reference and as tables of DuckDB."""

    def __init__(self) -> None:
        self.subject, self.reference = EngineSubject(), Reference()
        self.rows: dict[str, list[Row]] = {name: [] for name in SOURCES}
        self.clock_ms = 0
        self.changes: Counter[Row] = Counter()
        for sql in SOURCES.values():
            made = parse(sql, {}, Limits())
            assert isinstance(made, CreateStream)
            self.apply(CreateSource(made.stream, sql))

    def apply(self, body: Any) -> None:
        step = self.subject.next_step(self.clock_ms, body)
        told = self.subject.apply(step).changes
        self.reference.apply(step)
        for changes in told:
            for weight, row in zip(changes.weights.tolist(), plain_rows(changes.table), strict=True):
                self.changes[row] += weight

    def bring(self, name: str, rows: list[Row], gone: bool) -> None:
        """Rows to a stream or a table; gone: that their keys go."""
        self.clock_ms += 10
        stream = self.subject.engine.catalogue[name]
        assert isinstance(stream, Stream)
        held = self.rows[name]
        if stream.is_table:
            rows = [(place % 5 if row[0] is None else row[0], *row[1:]) for place, row in enumerate(rows)]
            keys = {row[0] for row in rows}
            held[:] = [row for row in held if row[0] not in keys]
            rows = list({row[0]: row for row in rows}.values())
        if not gone or not stream.is_table:
            held += rows
        columns = table_of(rows, stream.schema.arrow)
        places = self.clock_ms * 100 + np.arange(len(rows))
        batch = Batch.from_arrow(
            stream.schema, columns, np.zeros(len(rows)), places, np.full(len(rows), self.clock_ms - 1)
        )
        batch = versions(stream, batch, np.full(len(rows), gone)) if stream.is_table else batch
        self.apply(Records(SourceName(name), batch, {}, frozenset()))
        for source in SOURCES:
            self.apply(Heartbeat(SourceName(source)))


VALUES = st.none() | st.integers(0, 2) | st.integers(0, 4)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*SOURCES]),
        st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=6),
        st.integers(0, 3),
    ),
    min_size=3,
    max_size=9,
)


def table_of(rows: list[Row], schema: pa.Schema) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return pa.Table.from_arrays([pa.array(column, pa.int32()) for column in columns], schema=schema)


def follow(world: World, text: str) -> None:
    world.apply(Register((Registration("q", text),)))
    world.subject.engine.follow("q")
    world.changes = Counter(world.subject.answer("q").rows)


def compare_on_the_way(
    database: duckdb.DuckDBPyConnection,
    steps: list[tuple[str, list[Row], int]],
    text: str,
    begin: int,
    theirs: str | None = None,
) -> None:
    """Bring rows; follow a query from one of the steps on, and compare its answer behind each. theirs: what
    DuckDB is asked, if not the text.
    """
    world = World()
    for place, (name, rows, chance) in enumerate(steps):
        if place == begin:
            follow(world, text)
        world.bring(name, rows, gone=chance == 0)
        if place >= begin:
            check(database, world, text, theirs)
    if begin == len(steps):
        follow(world, text)
        check(database, world, text, theirs)


def check(database: duckdb.DuckDBPyConnection, world: World, text: str, asked: str | None = None) -> None:
    answer, expected = world.subject.answer("q"), world.reference.answer("q")
    assert exact_rows(answer.rows) == exact_rows(expected.rows), text
    assert answer.errors == expected.errors, text
    assert Counter(answer.rows) == +world.changes, text
    for name, rows in world.rows.items():
        database.register(name, table_of(rows, SCHEMA))
    try:
        theirs = plain_rows(database.sql(asked or text).to_arrow_table())
    except duckdb.InvalidInputException:
        return
    finally:
        for name in world.rows:
            database.unregister(name)
    assert not answer.errors, text
    assert_same_bag(answer.rows, theirs, text)
