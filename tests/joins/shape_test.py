"""Shapes: which queries share a join, and which do not."""

from __future__ import annotations

import pytest

from engine.joins.joins import Joins
from engine.joins.key_index import KeyIndexes
from engine.joins.shape import Shape, shape_of, windows_of
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.windows.clauses import RowWindow
from tests.language.fixtures import CATALOGUE
from tests.time_windows import range_window

WIDTHS = {name: len(source.schema) for name, source in CATALOGUE.items() if isinstance(source, Stream)}


def bound(sql: str) -> Query:
    query = parse(sql, CATALOGUE, Limits())
    assert isinstance(query, Query)
    return query


def shape(sql: str) -> Shape | None:
    return shape_of(bound(sql), WIDTHS)


BASE = "SELECT f.flight FROM flights f JOIN weather w ON f.dest = w.dest"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM flights [ROWS 5] AS f, weather [RANGE 1 HOUR] AS w WHERE w.dest = f.dest",
        "SELECT w.wind FROM flights f JOIN weather w ON f.dest = w.dest AND w.wind > f.delay WHERE delay > 7",
        "SELECT f.flight FROM flights f LEFT JOIN weather w ON f.dest = w.dest",
        "SELECT f.flight FROM flights f JOIN weather w USING (dest) ORDER BY 1 LIMIT 2",
        "SELECT f.flight FROM flights f SEMI JOIN weather w ON f.dest = w.dest",
    ],
)
def test_the_same_sources_by_the_same_keys_are_one_shape(sql):
    one = shape(BASE)
    assert one is not None
    assert shape(sql) == one
    assert hash(shape(sql)) == hash(one)
    assert str(one) == "flights#0.dest = weather#1.dest"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f.flight FROM flights f JOIN weather w ON f.dest = w.dest AND f.day = w.day",
        "SELECT f.flight FROM flights f JOIN weather w ON f.day = w.day",
        "SELECT f.flight FROM weather w JOIN flights f ON f.dest = w.dest",
    ],
)
def test_other_keys_or_another_order_are_another_shape(sql):
    assert shape(sql) is not None
    assert shape(sql) != shape(BASE)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT flight FROM flights WHERE delay > 1",
        "SELECT f.flight FROM flights f JOIN weather w ON f.delay > w.wind",
        "SELECT f.flight FROM flights f JOIN weather w ON f.flight + 1 = w.wind",
        "SELECT f.flight FROM flights f JOIN (SELECT DISTINCT dest FROM weather) w ON f.dest = w.dest",
        "SELECT f.carrier FROM flights f ASOF JOIN weather w ON f.dest = w.dest AND f.ts >= w.ts",
    ],
)
def test_some_queries_share_nothing(sql):
    assert shape(sql) is None


def test_a_chain_of_joins_names_its_inputs_as_from_does():
    sql = (
        "SELECT f.flight FROM flights [ROWS 3] AS f JOIN weather [RANGE 2 SECONDS] AS w ON f.dest = w.dest "
        "JOIN planes p ON p.flight = f.flight JOIN flights [ROWS 4] AS g ON g.dest = w.dest AND g.day = f.day"
    )
    found = shape(sql)
    assert found is not None
    assert found.inputs == ("flights", "weather", "planes", "flights")
    assert [(edge.left, edge.right) for edge in found.edges] == [(0, 1), (0, 2), (1, 3), (0, 3)]
    names = [(edge.left_keys[0].name, edge.right_keys[0].name) for edge in found.edges]
    assert names == [("dest", "dest"), ("flight", "flight"), ("dest", "dest"), ("day", "day")]
    places = [[key.index for key in (*edge.left_keys, *edge.right_keys)] for edge in found.edges]
    assert places == [[2, 0], [1, 0], [0, 2], [7, 7]]
    windows = windows_of(bound(sql), found)
    assert (windows[0], windows[1], windows[3]) == (RowWindow(3), range_window(2_000), RowWindow(4))


def test_the_chain_ends_before_what_is_not_shared():
    sql = BASE + " LEFT JOIN planes p ON p.flight = f.flight"
    assert shape(sql) == shape(BASE)


def test_a_group_lives_as_long_as_its_queries():
    indexes = KeyIndexes()
    joins = Joins(indexes, WIDTHS)
    one, other = bound(BASE), bound(BASE + " WHERE w.wind > 3")
    joins.add("one", one)
    joins.add("other", other)
    (group,) = joins
    assert (group.queries, len(indexes)) == (2, 2)
    assert joins.group_of(one) is group
    third = bound(
        "SELECT f.flight FROM flights f JOIN weather w ON f.dest = w.dest JOIN planes p USING (flight)"
    )
    joins.add("third", third)
    assert (len(joins), len(indexes)) == (2, 4)
    for name, query in {"one": one, "other": other, "third": third}.items():
        joins.remove(name, query)
    assert (len(joins), len(indexes)) == (0, 0)
