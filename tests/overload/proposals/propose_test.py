"""Proposals: which texts they are of, which they are never of, and that none makes an answer grow."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from engine.engine import Engine
from engine.language.query import Query
from tests.capacities import small_engine
from tests.strategies import batch_of
from tureen.errors import UnknownQuery

HOUR = "[RANGE 1 HOUR]"


@pytest.fixture(scope="module")
def engine() -> Engine:
    """Two streams of 400 rows over 100 minutes, and a table."""
    made = small_engine()
    for name in "st":
        made.create(
            f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP NOT NULL) "
            "WITH (timestamp = 'ts') RETAIN 1 HOUR"
        )
    made.create("CREATE TABLE d (k STRING, name STRING, PRIMARY KEY (k))")
    rng = np.random.default_rng(4)
    for name in "st":
        rows = [
            (0, place, place * 15_000, (f"k{rng.integers(40)}", int(rng.integers(50))))
            for place in range(400)
        ]
        made.ingest(name, batch_of(made.catalogue[name].schema, rows), clock_ms=10**9)
    made.ingest("d", batch_of(made.catalogue["d"].stored_schema, []), clock_ms=10**9)
    return made


def proposed(engine: Engine, sql: str) -> list[tuple[str, str, str]]:
    return [(one.rule, one.source, one.sql) for one in engine.proposals(sql=sql)]


def windows(engine: Engine, sql: str) -> list[str]:
    return [text for rule, _, text in proposed(engine, sql) if "window" in rule]


def test_window_is_halved_and_the_rest_of_the_text_stays(engine: Engine) -> None:
    sql = "SELECT v -- all of it\nFROM s [RANGE 1 HOUR SLIDE 1 MINUTE] AS x WHERE x.v > 3"
    assert windows(engine, sql) == [sql.replace("1 HOUR", "30 MINUTES")]


def test_saving_and_cost_are_told(engine: Engine) -> None:
    (one,) = [each for each in engine.proposals(sql=f"SELECT v FROM s {HOUR}") if "window" in each.rule]
    assert one.change == "1 hour to 30 minutes"
    assert one.rows == pytest.approx(241, abs=2)
    assert one.rows_after == pytest.approx(121, abs=2)
    assert one.bytes_saved > 100 * 20
    assert one.expected is not None
    assert one.expected.as_dict() == {"fp": 0.0, "fn": pytest.approx(0.5), "fn_changes": 0.0}
    assert not one.within_tolerance


def test_cost_of_a_join_is_as_its_windows(engine: Engine) -> None:
    sql = f"SELECT s.v FROM s {HOUR} JOIN t [RANGE 30 MINUTES] ON s.k = t.k"
    found = {one.source: one.expected for one in engine.proposals(sql=sql) if one.rule == "window reduction"}
    assert found["s"] is not None
    assert found["s"].fn == pytest.approx(1 / 2)
    assert found["s"].fn_changes == pytest.approx(30 / 90)
    assert found["t"] is not None
    assert found["t"].fn == pytest.approx(1 / 2)
    assert found["t"].fn_changes == pytest.approx(15 / 90)


def test_unbounded_join_gets_windows_of_what_is_retained(engine: Engine) -> None:
    sql = 'SELECT s.v FROM s JOIN t [UNBOUNDED] AS "T" ON s.k = "T".k'
    assert proposed(engine, sql) == [
        ("window into a join", "s", sql.replace("FROM s", f"FROM s {HOUR}")),
        ("window into a join", "t", sql.replace("[UNBOUNDED]", HOUR)),
    ]


def test_unbounded_source_without_a_join_keeps_all(engine: Engine) -> None:
    assert windows(engine, "SELECT v FROM s") == []


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT DISTINCT v FROM s {HOUR}",
        f"SELECT v FROM (SELECT DISTINCT v FROM s {HOUR}) AS x WHERE v > 3",
        f"SELECT DISTINCT v FROM (SELECT v FROM s {HOUR}) AS x",
        f"SELECT k FROM s {HOUR} UNION SELECT k FROM t {HOUR}",
        f"SELECT k FROM s {HOUR} INTERSECT SELECT k FROM t {HOUR}",
        f"SELECT v FROM s {HOUR} ORDER BY v LIMIT 3",
        f"SELECT s.v FROM s JOIN d ON s.k = d.k WHERE s.v NOT IN (SELECT v FROM t {HOUR})",
        f"SELECT k FROM s [ROWS 10] WHERE NOT EXISTS (SELECT v FROM t {HOUR} WHERE t.k = s.k)",
        f"SELECT k FROM s [ROWS 10] EXCEPT ALL SELECT k FROM t {HOUR}",
        f"SELECT s.k, t.v FROM s [ROWS 10] LEFT JOIN t {HOUR} ON s.k = t.k",
        f"SELECT s.k, t.v FROM s {HOUR} RIGHT JOIN t [ROWS 10] ON s.k = t.k",
        f"SELECT s.k, t.v FROM s {HOUR} FULL JOIN t {HOUR} ON s.k = t.k",
        f"SELECT s.k FROM s [ROWS 10] ANTI JOIN t {HOUR} ON s.k = t.k",
    ],
)
def test_window_whose_loss_may_make_the_answer_grow_stays(engine: Engine, sql: str) -> None:
    assert isinstance(engine.prepare(sql), Query)
    assert windows(engine, sql) == []


def test_left_of_a_negation_may_shrink(engine: Engine) -> None:
    sql = f"SELECT v FROM s {HOUR} WHERE v NOT IN (SELECT v FROM t [RANGE 2 HOURS])"
    assert windows(engine, sql) == [sql.replace("1 HOUR", "30 MINUTES")]


SUBJECTS = [
    f"SELECT v FROM s {HOUR} WHERE v > 10",
    f"SELECT s.v, t.v AS w FROM s {HOUR} JOIN t [RANGE 40 MINUTES] ON s.k = t.k",
    "SELECT s.v, t.v AS w FROM s JOIN t ON s.k = t.k",
    f"SELECT v FROM s {HOUR} WHERE v NOT IN (SELECT v FROM t [RANGE 5 MINUTES])",
    f"SELECT v FROM s {HOUR} WHERE v IN (SELECT v FROM t {HOUR})",
    f"SELECT k FROM s {HOUR} UNION ALL SELECT k FROM t {HOUR}",
    f"SELECT k FROM s {HOUR} EXCEPT ALL SELECT k FROM t [RANGE 10 MINUTES]",
    f"SELECT k FROM s {HOUR} INTERSECT ALL SELECT k FROM t {HOUR}",
    f"SELECT s.v FROM s {HOUR} LEFT JOIN t [ROWS 5] ON s.k = t.k",
    f"SELECT x.v FROM (SELECT v FROM s {HOUR}) AS x WHERE x.v > 20",
]


@pytest.mark.parametrize("sql", SUBJECTS)
def test_no_proposal_gives_a_row_that_the_text_does_not(engine: Engine, sql: str) -> None:
    def answer(text: str) -> Counter[str]:
        name = f"q{len(texts)}"
        texts.append(text)
        engine.register(name, text)
        rows = Counter(map(repr, engine.view().snapshot(name).table.to_pylist()))
        engine.unregister(name)
        return rows

    texts: list[str] = []
    whole = answer(sql)
    assert whole
    found = proposed(engine, sql)
    assert found
    for _, _, text in found:
        assert answer(text) <= whole


def test_standing_query_is_proposed_for(engine: Engine) -> None:
    engine.register("standing", f"SELECT v FROM s {HOUR} WHERE v > 7")
    (one,) = [each for each in engine.proposals(query_id="standing") if "window" in each.rule]
    assert one.sql == "SELECT v FROM s [RANGE 30 MINUTES] WHERE v > 7"
    engine.unregister("standing")
    with pytest.raises(UnknownQuery):
        engine.proposals(query_id="standing")


def test_proposal_keeps_the_columns_of_the_answer(engine: Engine) -> None:
    for sql in SUBJECTS:
        query = engine.prepare(sql)
        assert isinstance(query, Query)
        for _, _, text in proposed(engine, sql):
            other = engine.prepare(text)
            assert isinstance(other, Query)
            assert replace(other, sql="") != replace(query, sql="")
            assert other.columns == query.columns
