"""Changes of followed queries: what the definition gives, and so the snapshot when they are added up."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import Step
from tests.differential.agreement import EngineSubject
from tests.differential.changes import agree
from tests.differential.engine import any_statement
from tests.differential.telling import (
    as_streams,
    of_engine,
)
from tests.sql_joins import Joins, joining
from tests.sql_selects import statement as any_select
from tests.strategies import batch_of, journeys, scripts
from tests.worlds import eventful_worlds

FEW = settings(max_examples=max(8, settings.default.max_examples // 2))
FEWER = settings(max_examples=max(6, settings.default.max_examples // 4))


@FEW
@given(steps=scripts(any_statement, steps_max=10), data=st.data())
def test_of_one_stream_they_are_the_references(steps: list[Step], data: st.DataObject) -> None:
    agree(as_streams(steps, data))


@FEWER
@given(steps=journeys(any_select, legs=2), data=st.data())
def test_of_every_kind_of_query_they_are_the_references(steps: list[Step], data: st.DataObject) -> None:
    agree(as_streams(steps, data))


def alone(draw: st.DrawFn, sources: Mapping[str, Stream]) -> str:
    """Any SELECT over one of the sources."""
    return Joins(draw, sources, inputs_max=1).statement()


@FEWER
@given(steps=eventful_worlds(alone, streams_count=1), data=st.data())
def test_of_one_source_beside_others_they_are_the_references(steps: list[Step], data: st.DataObject) -> None:
    agree(as_streams(steps, data), Limits(superseded_rows_max=0))


@FEWER
@given(steps=eventful_worlds(joining), data=st.data())
def test_of_joins_they_are_the_references(steps: list[Step], data: st.DataObject) -> None:
    agree(as_streams(steps, data), Limits(superseded_rows_max=0))


@FEWER
@given(steps=eventful_worlds(joining, streams_count=0, tables_count=2), data=st.data())
def test_of_tables_alone_they_are_the_references(steps: list[Step], data: st.DataObject) -> None:
    agree(as_streams(steps, data), Limits(superseded_rows_max=0))


EXAMPLE = {
    "counted": (
        "SELECT dest, COUNT(*) AS n FROM departures [RANGE 5 SECONDS] WHERE delay > 30 GROUP BY dest",
        {
            0: [(1, "LAX", 1)],
            2_000: [(-1, "LAX", 1), (1, "BUR", 1), (1, "LAX", 2)],
            5_001: [(-1, "LAX", 2), (1, "LAX", 1)],
            7_001: [(-1, "BUR", 1), (-1, "LAX", 1)],
        },
    ),
    "closed": (
        "SELECT dest, COUNT(*) AS n FROM TUMBLE(departures, INTERVAL '5' SECOND) GROUP BY dest, window_end",
        {4_999: [(1, "BUR", 1), (1, "LAX", 2), (1, "SFO", 1)]},
    ),
    "whole": (
        "SELECT RSTREAM(dest, delay) FROM departures [RANGE 5 SECONDS] WHERE delay > 30",
        {
            0: [(1, "LAX", 45)],
            2_000: [(1, "BUR", 35), (1, "LAX", 45), (1, "LAX", 60)],
            5_001: [(1, "BUR", 35), (1, "LAX", 60)],
        },
    ),
}


def test_the_example_of_the_page_on_what_answers_mean() -> None:
    subject = EngineSubject()
    text = "CREATE STREAM departures (dest STRING, delay INT, ts TIMESTAMP NOT NULL)"
    subject.engine.create(f"{text} WITH (topic = 'd', timestamp = 'ts')")
    stream = subject.engine.catalogue["departures"]
    assert isinstance(stream, Stream)
    for query_id, (sql, _) in EXAMPLE.items():
        subject.engine.register(query_id, sql)
        subject.engine.follow(query_id)
    rows = [(0, "LAX", 45), (1_500, "SFO", 10), (2_000, "LAX", 60), (2_000, "BUR", 35), (9_000, "LAX", 5)]
    placed = [(0, offset, ts, values) for offset, (ts, *values) in enumerate(rows)]
    result = subject.engine.ingest("departures", batch_of(stream.schema, placed))
    assert result.now_ms == 8_999
    for query_id, parts in of_engine(result).items():
        found: dict[int, list[tuple[object, ...]]] = {}
        for line in parts[0].lines:
            found.setdefault(line.at_ms, []).append((line.weight, *(value for _, value in line.row)))
        assert {at_ms: sorted(some) for at_ms, some in found.items()} == EXAMPLE[query_id][1]
