"""Streams that the language tests speak of, and columns of chosen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.algebra.project.stage import Output, Project
from engine.language.query import CreateStream, CreateSummary, Query, Statement
from engine.language.statements import parse
from engine.model.batch import Column
from engine.model.limits import Limits
from engine.model.source import Derived, SourceName, Stream
from engine.model.summary import SummaryDefinition

FLIGHTS = """CREATE STREAM flights (carrier STRING NOT NULL, flight INTEGER, dest STRING, delay DOUBLE,
distance BIGINT, price DECIMAL(10, 2), cancelled BOOLEAN, day DATE,
ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"""
ODD = '''CREATE STREAM "Odd Names" ("a b" INTEGER, "x; DROP" STRING, "say ""hi""" STRING, "Ünïcode" DOUBLE,
now INTEGER, "select" BOOLEAN) WITH (topic = 'odd')'''
WEATHER = """CREATE STREAM weather (dest STRING NOT NULL, wind DOUBLE, day DATE, ts TIMESTAMP NOT NULL)
WITH (timestamp = 'ts')"""
PLANES = "CREATE TABLE planes (flight BIGINT PRIMARY KEY, model STRING, seats INTEGER)"
FARES = """CREATE TABLE fares (carrier STRING, dest STRING, fare DECIMAL(8, 2), since TIMESTAMP NOT NULL,
PRIMARY KEY (carrier, dest)) WITH (timestamp = 'since') NON RETROACTIVE"""

AIRPORTS = """CREATE STREAM airports (code STRING NOT NULL, city STRING, runways INTEGER,
ts TIMESTAMP NOT NULL, CONSTRAINT UNIQUE (code), CONSTRAINT UNIQUE (city, runways)) WITH (timestamp = 'ts')"""
STORES = """CREATE STREAM store1 (itemno INTEGER NOT NULL, price DOUBLE,
timestamp TIMESTAMP NOT NULL) WITH (timestamp = 'timestamp')"""
SUMMARIES_SQL = (
    "CREATE SUMMARY items1 ON store1 (itemno) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)",
    "CREATE SUMMARY items2 ON store2 (itemno) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)",
    "CREATE SUMMARY prices ON store1 (price) WITH GRANULARITY 1 MINUTE AND COLLAPSE(2, 1)",
    "CREATE SUMMARY prices_long ON store1 (price) WITH GRANULARITY 1 HOUR AND COLLAPSE(2, 2)",
    "CREATE SUMMARY airlines ON flights (carrier) WITH GRANULARITY 1 MINUTE AND COLLAPSE(2, 4)",
    "CREATE SUMMARY numbers ON store3 (itemno) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)",
)
PARCELS = """CREATE STREAM parcels (id BIGINT NOT NULL, tags ARRAY<STRING>, weights ARRAY<DOUBLE>,
labels MAP<STRING, STRING>, stops ARRAY<STRUCT<city STRING, at TIMESTAMP>>, extra JSON, ts TIMESTAMP NOT NULL)
WITH (timestamp = 'ts')"""
VIEWS = (
    Derived(SourceName("late"), "SELECT carrier, delay * 2 AS twice, ts FROM flights WHERE delay > 10", True),
    Derived(
        SourceName("carriers"),
        "SELECT carrier, COUNT(*) AS n, MAX(twice) AS most FROM late GROUP BY carrier",
    ),
    Derived(SourceName("broken"), "SELECT gone FROM flights"),
    Derived(SourceName("endless"), "SELECT * FROM endless"),
)


def catalogue() -> dict[str, Stream | Derived]:
    found: dict[str, Stream | Derived] = {view.name: view for view in VIEWS}
    stores = [STORES, STORES.replace("store1", "store2")]
    stores.append(STORES.replace("store1", "store3").replace("INTEGER", "BIGINT"))
    for text in (FLIGHTS, ODD, WEATHER, PLANES, FARES, AIRPORTS, PARCELS, *stores):
        statement = parse(text, {}, Limits())
        assert isinstance(statement, CreateStream)
        found[statement.stream.name] = statement.stream
    return found


def summaries() -> dict[str, SummaryDefinition]:
    made = [parse(text, CATALOGUE, Limits()) for text in SUMMARIES_SQL]
    return {one.definition.name: one.definition for one in made if isinstance(one, CreateSummary)}


CATALOGUE: Mapping[str, Stream | Derived] = catalogue()
SUMMARIES: Mapping[str, SummaryDefinition] = summaries()


def bind(sql: str) -> Statement:
    return parse(sql, CATALOGUE, Limits(), summaries=SUMMARIES)


def outputs(sql: str, streams: Mapping[str, Stream | Derived] = CATALOGUE) -> tuple[Output, ...]:
    statement = parse(sql, streams, Limits())
    assert isinstance(statement, Query)
    (project,) = statement.stages
    assert isinstance(project, Project)
    return project.outputs


def stream_of(columns: str, options: str = "topic = 't'") -> dict[str, Stream]:
    """A catalogue of one stream ``t`` with these columns."""
    statement = parse(f"CREATE STREAM t ({columns}) WITH ({options})", {}, Limits())
    assert isinstance(statement, CreateStream)
    return {"t": statement.stream}


def columns_of(stream: Stream, rows: Sequence[Sequence[Any]]) -> list[Column]:
    """Columns of Python values as Arrow takes them."""
    return [
        Column.from_arrow(field.type, pa.array([row[place] for row in rows], field.type.arrow))
        for place, field in enumerate(stream.schema)
    ]
