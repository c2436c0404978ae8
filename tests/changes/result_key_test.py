"""The key of a result: what it is of which query, and that its columns tell rows apart at every instant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from engine.changes.result_key import result_key
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Field, Schema, Stream
from engine.model.step import Step
from engine.reference import Reference
from tests.language.fixtures import CATALOGUE
from tests.sql_joins import KINDS, Inputs, Joins, aliased
from tests.sql_selects import Item, statement
from tests.strategies import journeys
from tests.worlds import worlds
from tureen.errors import QueryPaused

SOURCES = {name: one for name, one in CATALOGUE.items() if isinstance(one, Stream)}
TUMBLE = "TUMBLE(flights, INTERVAL '1' MINUTE)"
LAST = "flights [PARTITION BY carrier ROWS 1]"
DESTS = "(SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest)"
RANKS = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY dest ORDER BY delay) AS r FROM flights) AS f"
SEVEN = "(SELECT * FROM planes WHERE flight = 7)"
N = "COUNT(*) AS n"


def key_of(sql: str) -> str | None:
    query = parse(sql, CATALOGUE, Limits())
    assert isinstance(query, Query)
    key = result_key(query, SOURCES)
    return None if key is None else ", ".join(query.columns[place][0] for place in key)


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        # groups
        (f"SELECT carrier, {N} FROM flights GROUP BY carrier", "carrier"),
        (f"SELECT {N}, dest AS d, carrier FROM flights GROUP BY carrier, dest", "d, carrier"),
        (f"SELECT dest, {N} FROM flights GROUP BY carrier, dest", None),
        (f"SELECT UPPER(carrier) AS c, {N} FROM flights GROUP BY carrier", None),
        (f"SELECT UPPER(carrier) AS c, {N} FROM flights GROUP BY UPPER(carrier)", "c"),
        (f"SELECT {N} FROM flights", ""),
        ("SELECT MAX(delay) AS d, 1 AS one FROM flights HAVING COUNT(*) > 3", ""),
        (f"SELECT carrier, {N} FROM flights WHERE carrier = 'AA' GROUP BY carrier", ""),
        (f"SELECT dest, {N} FROM flights WHERE carrier = 'AA' GROUP BY carrier, dest", "dest"),
        (f"SELECT dest, {N} FROM flights WHERE carrier <> 'AA' GROUP BY carrier, dest", None),
        (
            f"SELECT window_end, carrier, {N} FROM {TUMBLE} GROUP BY window_end, carrier",
            "window_end, carrier",
        ),
        (f"SELECT carrier, {N} FROM {TUMBLE} GROUP BY window_end, carrier", None),
        ("SELECT carrier, n FROM carriers WHERE n > 3", "carrier"),
        (f"SELECT n, {N} FROM carriers GROUP BY n", "n"),
        # tables
        ("SELECT * FROM planes", "flight"),
        ("SELECT model, flight AS f FROM planes WHERE seats > 3", "f"),
        ("SELECT model FROM planes", None),
        ("SELECT model FROM planes WHERE flight = 7", ""),
        ("SELECT model FROM planes WHERE flight = 7.5e0", None),  # compared as DOUBLE, which rounds
        ("SELECT fare, dest, carrier FROM fares", "dest, carrier"),
        ("SELECT fare, dest FROM fares WHERE carrier = 'AA' AND fare > 3", "dest"),
        ("SELECT fare, dest FROM fares", None),
        (f"SELECT flight, seats, {N} FROM planes GROUP BY flight, seats", "flight"),
        # rows of streams
        ("SELECT * FROM flights", None),
        (f"SELECT * FROM {TUMBLE}", None),
        (f"SELECT delay, carrier FROM {LAST}", "carrier"),
        (f"SELECT delay FROM {LAST}", None),
        ("SELECT delay, carrier FROM flights [PARTITION BY carrier ROWS 2]", None),
        ("SELECT delay, carrier FROM flights [ROWS 1]", ""),
        # the rest of a SELECT
        ("SELECT DISTINCT dest, delay FROM flights", "dest, delay"),
        ("SELECT DISTINCT delay, carrier FROM " + LAST, "carrier"),
        ("SELECT dest FROM flights ORDER BY delay LIMIT 1", ""),
        ("SELECT flight, model FROM planes ORDER BY seats LIMIT 3", "flight"),
        ("SELECT flight, model FROM planes ORDER BY seats FETCH FIRST ROW WITH TIES", "flight"),
        ("SELECT flight, e FROM planes, UNNEST(ARRAY[model, 'a']) AS e", None),
        (
            "SELECT flight, e, n FROM planes, UNNEST(ARRAY[model, 'a']) WITH ORDINALITY AS x (e, n)",
            "flight, n",
        ),
        (
            "SELECT e, n, flight FROM planes LEFT JOIN UNNEST(ARRAY[seats]) WITH ORDINALITY x (e, n) ON TRUE",
            "n, flight",
        ),
        ("SELECT e, n FROM planes, UNNEST(ARRAY[seats]) WITH ORDINALITY AS x (e, n)", None),
        (f"SELECT dest, r FROM {RANKS}", "dest, r"),
        (f"SELECT dest, delay FROM {RANKS} WHERE r = 1", "dest"),
        (f"SELECT dest, delay, r FROM {RANKS} WHERE r <= 3", "dest, r"),
        ("SELECT flight FROM planes WHERE flight IN (SELECT distance FROM flights)", "flight"),
        # set operations
        ("SELECT flight FROM planes UNION ALL SELECT flight FROM planes", None),
        ("SELECT flight, model FROM planes UNION SELECT flight, dest FROM flights", "flight, model"),
        ("SELECT flight, model FROM planes INTERSECT ALL SELECT flight, dest FROM flights", "flight"),
        ("SELECT flight, dest FROM flights INTERSECT ALL SELECT flight, model FROM planes", "flight"),
        ("SELECT flight, dest FROM flights INTERSECT SELECT flight, carrier FROM flights", "flight, dest"),
        ("SELECT flight, dest FROM flights INTERSECT ALL SELECT flight, carrier FROM flights", None),
        ("SELECT flight, model FROM planes EXCEPT ALL SELECT flight, dest FROM flights", "flight"),
        ("SELECT flight, dest FROM flights EXCEPT ALL SELECT flight, model FROM planes", None),
        ("SELECT flight, dest FROM flights EXCEPT SELECT flight, model FROM planes", "flight, dest"),
        ("SELECT dest FROM flights INTERSECT SELECT 'LAX' FROM flights", ""),
        (
            "SELECT model, flight FROM planes EXCEPT ALL ON (model) SELECT dest AS model FROM flights",
            "flight",
        ),
        # joins
        ("SELECT f.carrier, model FROM flights f JOIN planes p ON f.flight = p.flight", None),
        (f"SELECT f.carrier, model FROM {LAST} f JOIN planes p ON f.flight = p.flight", "carrier"),
        (f"SELECT f.carrier, model FROM {LAST} f LEFT JOIN planes p ON f.flight = p.flight", "carrier"),
        (f"SELECT f.carrier, model FROM {LAST} f RIGHT JOIN planes p ON f.flight = p.flight", None),
        (f"SELECT f.carrier, p.flight FROM {LAST} f JOIN planes p ON f.dest = p.model", "carrier, flight"),
        (
            f"SELECT f.carrier, p.flight FROM {LAST} f RIGHT JOIN planes p ON f.dest = p.model",
            "carrier, flight",
        ),
        (f"SELECT f.carrier, model FROM {LAST} f JOIN planes p ON f.dest = p.model", None),
        (f"SELECT f.carrier FROM {LAST} f SEMI JOIN planes p ON f.dest = p.model", "carrier"),
        (f"SELECT DISTINCT f.dest, p.flight FROM flights f JOIN {SEVEN} p ON f.flight = p.flight", "dest"),
        (
            f"SELECT DISTINCT f.dest, p.flight FROM flights f LEFT JOIN {SEVEN} p ON f.delay > 3",
            "dest, flight",
        ),
        ("SELECT p.flight, n FROM planes p FULL JOIN carriers c ON p.model = c.carrier", None),
        (
            "SELECT p.flight, c.carrier FROM planes p FULL JOIN carriers c ON p.model = c.carrier",
            "flight, carrier",
        ),
        (
            "SELECT a.carrier, b.carrier FROM carriers a FULL JOIN carriers b ON a.n = b.n",
            "carrier, carrier_2",
        ),
        (f"SELECT a.dest, b.dest FROM {DESTS} a FULL JOIN {DESTS} b ON a.n = b.n", None),  # twice NULL, NULL
        (f"SELECT a.dest, b.dest FROM {DESTS} a LEFT JOIN {DESTS} b ON a.n = b.n", "dest, dest_2"),
        (
            f"SELECT f.carrier, wind FROM {LAST} f ASOF JOIN weather w ON f.dest = w.dest AND f.ts >= w.ts",
            "carrier",
        ),
        (
            "SELECT f.carrier, fare FROM flights f JOIN fares t ON f.carrier = t.carrier AND f.dest = t.dest",
            None,
        ),
    ],
)
def test_keys(sql: str, key: str | None) -> None:
    assert key_of(sql) == key


# --- that they are keys -----------------------------------------------------------------------------

FEW = settings(max_examples=max(12, settings.default.max_examples // 2))


class KeyedInputs(Inputs):
    """What has a key: a table, the last row of each key, groups; over columns of few values."""

    def item(self, depth: int, alias: str) -> Item:
        columns = [f'"{field.name}"' for field in self.stream.schema]
        key, other = self.pick(*columns), self.pick(*columns)
        fields = tuple(Field(f"{alias}c{n}", f.type) for n, f in enumerate(self.stream.schema))
        if self.chance(3):
            inner = f"(SELECT {key}, COUNT(*) AS n, MAX({other}) AS m FROM {self.name} GROUP BY {key})"
            kinds = {f'"{field.name}"': field.type for field in self.stream.schema}
            n = Field(f"{alias}c1", fields[0].type)
            return aliased(
                f"(SELECT k, MAX(m) AS m FROM {inner} AS g(k, n, m) GROUP BY k)",
                alias,
                Schema((Field(f"{alias}c0", kinds[key]), replace(n, type=kinds[other]))),
            )
        if self.stream.is_table:
            return aliased(self.name, alias, Schema(fields))
        last = self.pick("", f"PARTITION BY {alias}c{columns.index(key)} ")
        return aliased(f"{self.name} [{last}ROWS 1]", alias, Schema(fields))


class KeyedJoins(Joins):
    """All columns of joins of such inputs, or some, perhaps where one of them is a constant."""

    def over(self, stream: Stream) -> Inputs:
        return KeyedInputs(self.draw, stream, self.instant)

    def statement(self, depth: int = 1) -> str:
        item = self.input(0)
        for _ in range(self.draw(st.sampled_from([1, 1, 2]))):
            item = self.joined(item, self.input(0), self.pick(*KINDS))
        names = [field.name for field in item.schema]
        some = (
            self.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)) if self.chance(3) else names
        )
        where = f" WHERE {self.writer(item.schema).predicate(0)}" if self.chance(3) else ""
        text = f"SELECT {', '.join(some)} FROM {item.text}"
        if self.chance(3):
            return f"{text}{where} {self.pick(*self.set_operations[:-1])} {text}"
        return f"{text}{where}"


def keyed(draw: st.DrawFn, sources: Mapping[str, Stream], instant: int = 1_000) -> str:
    return KeyedJoins(draw, sources, instant).statement()


@FEW
@given(steps=journeys(statement))
def test_of_one_stream_no_two_rows_agree_in_the_key(steps: list[Step]) -> None:
    check(steps)


@FEW
@given(steps=worlds(keyed, streams_count=2, tables_count=2, steps_max=14, roomy=True))
def test_of_joins_no_two_rows_agree_in_the_key(steps: list[Step]) -> None:
    check(steps)


def check(steps: list[Step]) -> None:
    reference = Reference(Limits(superseded_rows_max=0))
    for step in steps:
        reference.apply(step)
        for query_id in reference.standing():
            query = reference.queries[query_id].query
            key = result_key(query, {name: source.stream for name, source in reference.sources.items()})
            if key is None:
                continue
            try:
                rows = reference.answer(query_id).rows
            except QueryPaused:
                continue
            event(f"key of {len(key)}, {min(len(rows), 3)} rows")
            told = Counter(tuple(plain(row[place]) for place in key) for row in rows)
            assert all(count == 1 for count in told.values()), (query.sql, key, rows)


def plain(value: Any) -> Any:
    """Equal where groups are: -0.0 equals 0.0, NaN equals NaN."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value
