"""All shards together tell what one engine over all rows tells, whatever is cut and whoever restarts."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.source import Stream
from engine.model.step import (
    Body,
    CreateSource,
    Position,
    Records,
    Register,
    Registration,
    Step,
)
from spark_jobs.scale_out.shards.layout import Layout
from tests.capacities import small_engine
from tests.differential.telling import OPERATORS
from tests.scale_out.sharded import Sharded, Whole, net_of
from tests.scale_out.shards_same_answers import agree_on
from tests.sql_joins import Joins, joining
from tests.strategies import batch_of
from tests.worlds import eventful_worlds

FEW = settings(max_examples=max(8, settings.default.max_examples // 2))

EMITS = (" EMIT CHANGES", " EMIT CHANGES WITH (format = 'diff')", " EMIT CHANGES WITH (snapshot = false)")


def emitting(steps: list[Step], data: st.DataObject) -> list[Step]:
    """The steps with queries that all emit, some of them with an operator."""
    texts: dict[str, str] = {}

    def changed(sql: str, query_id: str) -> str:
        if query_id not in texts:
            operator, emit = data.draw(st.sampled_from(OPERATORS)), data.draw(st.sampled_from(EMITS))
            texts[query_id] = (f"{operator}({sql})" if operator else sql) + emit
        return texts[query_id]

    return [
        replace(
            step,
            body=Register(
                tuple(replace(one, sql=changed(one.sql, one.query_id)) for one in step.body.registrations)
            ),
        )
        if isinstance(step.body, Register)
        else step
        for step in steps
    ]


def layouts(draw: Any, steps: list[Step]) -> Layout:
    """Any: by any column of a stream, by one of a table's key, or by none."""
    keys, whole = {}, set()
    for step in steps:
        if isinstance(step.body, CreateSource):
            stream = step.body.stream
            columns = stream.key if stream.is_table else [one.name for one in stream.schema]
            chosen = draw(st.sampled_from([columns[0], columns[0], columns[0], *columns, None]))
            if chosen is not None:
                keys[str(stream.name)] = chosen
            if draw(st.booleans()):
                whole.add(str(stream.name))
    return Layout(draw(st.integers(1, 4)), keys, frozenset(whole))


def agree(steps: list[Step], data: st.DataObject) -> Counter[str]:
    """Check that shards tell what engines over all rows tell; return how many queries there were in each
    whole shard.
    """
    rng = random.Random(data.draw(st.integers(0, 1_000)))
    return agree_on(emitting(steps, data), layouts(data.draw, steps), rng)


def alone(draw: st.DrawFn, sources: Mapping[str, Stream]) -> str:
    return Joins(draw, sources, inputs_max=1).statement()


@FEW
@given(steps=eventful_worlds(alone, streams_count=1, tables_count=0), data=st.data())
def test_over_one_stream(steps: list[Step], data: st.DataObject) -> None:
    agree(steps, data)


@FEW
@given(steps=eventful_worlds(joining), data=st.data())
def test_over_joins_of_streams_and_a_table(steps: list[Step], data: st.DataObject) -> None:
    agree(steps, data)


@FEW
@given(steps=eventful_worlds(joining, streams_count=1, tables_count=2), data=st.data())
def test_over_joins_with_tables(steps: list[Step], data: st.DataObject) -> None:
    agree(steps, data)


def test_a_row_that_retention_takes_as_an_equal_one_comes_in_another_part() -> None:
    """DSTREAM tells nothing where the answer is the same bag as before, wherever its rows are."""
    sql = "CREATE STREAM s (k INT, v INT, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')"
    sql += " RETAIN 5 MILLISECONDS"
    known = small_engine()
    known.create(sql)
    stream = known.catalogue["s"]
    assert isinstance(stream, Stream)
    rows = [(0, place, at, (place, 1)) for place, at in enumerate(range(0, 60, 6))]
    dstream = Registration("d", "DSTREAM (SELECT v FROM s) EMIT CHANGES")
    bodies: list[Body] = [CreateSource(stream, sql), Register((dstream,))]
    bodies += [Records(stream.name, batch_of(stream.schema, [row]), {}, frozenset()) for row in rows]
    steps = [Step(Position(1, place + 1), 1_000, body) for place, body in enumerate(bodies)]
    layout = Layout(4, {"s": "k"}, frozenset({"s"}))
    with tempfile.TemporaryDirectory() as checkpoint:
        sharded = Sharded(checkpoint, layout, random.Random(1))
        wholes = [Whole("parts", layout), Whole("lane", layout)]
        for one in sharded.rounds(steps):
            mine = [change for each in sharded.all_shards(one) for change in each.changes]
            assert net_of(mine) == net_of(change for whole in wholes for change in whole.take(one))
