"""Which queries shards answer each for itself, which the whole shard answers, and which nobody does."""

from __future__ import annotations

import pytest

from engine.changes.parts import why_not_in_parts
from engine.engine import Engine
from engine.language.query import Query
from engine.model.source import SourceName, Stream
from spark_jobs.scale_out.shards.layout import Layout, check_key
from spark_jobs.scale_out.shards.placement import place
from tests.capacities import small_engine
from tureen.errors import NotSupported, SettingsError

DEFINITIONS = (
    "CREATE STREAM s (k INT, v DOUBLE, x STRING, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')",
    "CREATE STREAM t (k BIGINT, w INT, x STRING, ts TIMESTAMP NOT NULL) WITH (topic = 't', timestamp = 'ts')",
    "CREATE STREAM u (k INT, v DOUBLE, ts TIMESTAMP NOT NULL) WITH (topic = 'u', timestamp = 'ts')",
    (
        "CREATE TABLE names (id INT, name STRING, ts TIMESTAMP NOT NULL, PRIMARY KEY (id)) "
        "WITH (topic = 'n', timestamp = 'ts')"
    ),
    (
        "CREATE TABLE fares (k INT, dest STRING, fare INT, ts TIMESTAMP NOT NULL, PRIMARY KEY (k, dest)) "
        "WITH (topic = 'f', timestamp = 'ts')"
    ),
    (
        "CREATE TABLE rates (id INT, rate INT, ts TIMESTAMP NOT NULL, PRIMARY KEY (id)) "
        "WITH (topic = 'r', timestamp = 'ts') NON RETROACTIVE"
    ),
    "CREATE VIEW recent AS SELECT k, v FROM s [RANGE 10 SECONDS] WHERE v > 1",
)
KEYS = {"s": "k", "t": "k", "fares": "k"}
LAYOUT = Layout(4, KEYS)

IN_PARTS = (
    # selections
    "SELECT * FROM s",
    "SELECT v FROM s",
    "SELECT v, x FROM s [RANGE 10 SECONDS] WHERE v > 3",
    "SELECT ISTREAM(k, v) FROM s [RANGE 10 SECONDS]",
    "SELECT DSTREAM(v, k) FROM s [RANGE 10 SECONDS]",
    "SELECT DSTREAM(v, k) FROM s",
    "ISTREAM (SELECT v FROM s UNION ALL SELECT w FROM t)",
    "SELECT v FROM s [RANGE 10 SECONDS] ORDER BY v",
    # groups
    "SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k",
    "SELECT k, x, SUM(v) AS total FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k, x HAVING COUNT(*) > 2",
    "SELECT CAST(k AS BIGINT) AS b, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY CAST(k AS BIGINT)",
    "SELECT k, COUNT(*) AS n FROM TUMBLE(s, INTERVAL '5' SECOND) GROUP BY k, window_end",
    "SELECT k, MAX(v) AS m FROM HOP(s, INTERVAL '5' SECOND, INTERVAL '10' SECOND) GROUP BY k, window_end",
    (
        "SELECT k, window_end, COUNT(*) AS n FROM SESSION(s PARTITION BY k, INTERVAL '5' SECOND) "
        "GROUP BY k, window_end"
    ),
    (
        "SELECT k, window_end, COUNT(*) AS n FROM SESSION(s PARTITION BY x, k, INTERVAL '5' SECOND) "
        "GROUP BY k, window_end"
    ),
    "SELECT DISTINCT k FROM s [RANGE 10 SECONDS]",
    "SELECT DISTINCT x, k FROM s [RANGE 10 SECONDS]",
    "SELECT k, COUNT(DISTINCT x) AS n FROM s [RANGE 10 SECONDS] GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, x FROM s [RANGE 10 SECONDS]) GROUP BY k",
    "SELECT k, MAX(v) AS m FROM recent GROUP BY k",
    # rows of each key
    "SELECT k, v FROM s [PARTITION BY k ROWS 3]",
    "SELECT k, x, v FROM s [PARTITION BY x, k ROWS 3 WHERE v > 1]",
    (
        "SELECT k, v FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS r "
        "FROM s [RANGE 10 SECONDS]) WHERE r <= 2"
    ),
    # elements
    "SELECT k, e, COUNT(*) AS n FROM s [RANGE 10 SECONDS], UNNEST(ARRAY[v, 1]) AS e GROUP BY k, e",
    # joins
    "SELECT s.k, w FROM s [RANGE 10 SECONDS] JOIN t [RANGE 10 SECONDS] ON s.k = t.k",
    "SELECT s.k, w FROM s [RANGE 10 SECONDS] LEFT JOIN t [RANGE 10 SECONDS] ON s.k = t.k AND s.x = t.x",
    "SELECT t.k, v FROM s [RANGE 10 SECONDS] RIGHT JOIN t [RANGE 10 SECONDS] ON s.k = t.k",
    "SELECT s.v, w FROM s [RANGE 10 SECONDS] FULL JOIN t [RANGE 10 SECONDS] ON s.k = t.k",
    "SELECT k, v FROM s [RANGE 10 SECONDS] ANTI JOIN t [RANGE 10 SECONDS] ON s.k = t.k",
    "SELECT s.k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] JOIN t [RANGE 10 SECONDS] ON s.k = t.k GROUP BY s.k",
    "SELECT t.k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] JOIN t [RANGE 10 SECONDS] ON s.k = t.k GROUP BY t.k",
    "SELECT s.k, a.v FROM s [RANGE 10 SECONDS], s [RANGE 5 SECONDS] AS a WHERE s.k = a.k AND s.v < a.v",
    # tables that all shards have, and such that are cut
    "SELECT s.k, name FROM s [RANGE 10 SECONDS] JOIN names ON s.k = names.id",
    "SELECT s.k, name FROM s [RANGE 10 SECONDS] LEFT JOIN names ON s.v = names.id",
    "SELECT s.k, v, rate FROM s [RANGE 10 SECONDS] JOIN rates ON s.k = rates.id",
    "SELECT k, v FROM s [RANGE 10 SECONDS] WHERE k NOT IN (SELECT id FROM names)",
    "SELECT k, dest, fare FROM fares WHERE fare > 3",
    "SELECT s.k, fare FROM s [RANGE 10 SECONDS] FULL JOIN fares ON s.k = fares.k",
    "SELECT k, SUM(fare) AS total FROM fares GROUP BY k",
    "SELECT id, name FROM names WHERE id IN (SELECT k FROM s [RANGE 10 SECONDS])",
    "SELECT name, v FROM names JOIN s [RANGE 10 SECONDS] ON s.k = names.id",
    # membership
    "SELECT k, v FROM s [RANGE 10 SECONDS] WHERE k IN (SELECT k FROM s [RANGE 1 SECOND] WHERE v > 3)",
    "SELECT k, v FROM s [RANGE 10 SECONDS] WHERE EXISTS (SELECT 1 FROM t [RANGE 5 SECONDS] WHERE t.k = s.k)",
    (
        "SELECT k, v FROM s [RANGE 10 SECONDS] "
        "WHERE NOT EXISTS (SELECT 1 FROM t [RANGE 5 SECONDS] WHERE t.k = s.k)"
    ),
    # set operations
    "SELECT v, x FROM s [RANGE 10 SECONDS] UNION ALL SELECT w, x FROM t [RANGE 10 SECONDS]",
    "SELECT k, x FROM s [RANGE 10 SECONDS] UNION SELECT k, x FROM t [RANGE 10 SECONDS]",
    "SELECT k, COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT k FROM t) GROUP BY k",
    "SELECT k, x FROM s [RANGE 10 SECONDS] INTERSECT ALL SELECT k, x FROM t [RANGE 10 SECONDS]",
    "SELECT x, k FROM s [RANGE 10 SECONDS] EXCEPT SELECT x, k FROM t [RANGE 10 SECONDS]",
    "SELECT x, v, k FROM s [RANGE 10 SECONDS] EXCEPT ALL ON (x, k) SELECT k, x FROM t [RANGE 10 SECONDS]",
    "SELECT k FROM s [RANGE 10 SECONDS] EXCEPT ALL SELECT id FROM names",
    "SELECT k FROM s [RANGE 10 SECONDS] EXCEPT SELECT id FROM names INTERSECT SELECT rate FROM rates",
)

NEEDS_ALL = {
    "SELECT COUNT(*) AS n FROM s [RANGE 1 MINUTE]": "groups",
    "SELECT x, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY x": "groups",
    "SELECT k + 1 AS b, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k + 1": "groups",
    "SELECT CAST(k AS INT) AS b, COUNT(*) AS n FROM t [RANGE 1 MINUTE] GROUP BY CAST(k AS INT)": "groups",
    "SELECT COUNT(*) AS n FROM TUMBLE(s, INTERVAL '5' SECOND) GROUP BY window_end": "groups",
    "SELECT COUNT(*) AS n, window_end FROM SESSION(s PARTITION BY x, INTERVAL '5' SECOND) "
    "GROUP BY x, window_end": "SESSION",
    "SELECT k, window_end FROM SESSION(s, INTERVAL '5' SECOND)": "SESSION",
    "SELECT DISTINCT x FROM s [RANGE 10 SECONDS]": "DISTINCT",
    "SELECT e, COUNT(*) AS n FROM s [RANGE 1 MINUTE], UNNEST(ARRAY[k, v]) AS e GROUP BY e": "groups",
    "SELECT k, v FROM s [ROWS 10]": "[ROWS 10]",
    "SELECT k, v FROM s [ROWS 10 WHERE v > 1]": "[ROWS 10]",
    "SELECT k, v FROM s [PARTITION BY x ROWS 3]": "[ROWS 3]",
    "SELECT k, v FROM s [RANGE 1 MINUTE] ORDER BY v DESC LIMIT 3": "LIMIT",
    "SELECT k, v FROM s [RANGE 1 MINUTE] ORDER BY k FETCH FIRST 3 ROWS WITH TIES": "FETCH FIRST",
    "SELECT k, v FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY x ORDER BY v) AS r "
    "FROM s [RANGE 10 SECONDS]) WHERE r <= 2": "ROW_NUMBER",
    "SELECT s.k, w FROM s [RANGE 10 SECONDS] JOIN t [RANGE 10 SECONDS] ON s.x = t.x": "join",
    "SELECT s.k, w FROM s [RANGE 10 SECONDS] JOIN t [RANGE 10 SECONDS] ON s.k = t.w": "join",
    "SELECT s.k, t.k AS tk FROM s [RANGE 10 SECONDS] CROSS JOIN t [RANGE 10 SECONDS]": "join",
    "SELECT s.k, COUNT(*) AS n FROM s [RANGE 9 SECONDS] FULL JOIN t ON s.k = t.k GROUP BY s.k": "groups",
    "SELECT t.k, COUNT(*) AS n FROM s [RANGE 9 SECONDS] LEFT JOIN t ON s.k = t.k GROUP BY t.k": "groups",
    "SELECT k, name FROM s [RANGE 10 SECONDS] RIGHT JOIN names ON s.k = names.id": "RIGHT",
    "SELECT k, name FROM s [RANGE 10 SECONDS] FULL JOIN names ON s.k = names.id": "FULL",
    "SELECT name, v FROM names LEFT JOIN s [RANGE 10 SECONDS] ON s.k = names.id": "has all rows",
    "SELECT id, name FROM names WHERE id NOT IN (SELECT k FROM s [RANGE 10 SECONDS])": "NOT IN",
    "SELECT id FROM names WHERE NOT EXISTS (SELECT 1 FROM s [NOW] WHERE s.k = names.id)": "partner",
    "SELECT id, name FROM names WHERE name IN (SELECT x FROM s [RANGE 10 SECONDS])": "compare the key",
    "SELECT id, name FROM names": "it reads only tables",
    "SELECT COUNT(*) AS n FROM names": "it reads only tables",
    "SELECT k, v FROM s [RANGE 10 SECONDS] WHERE k NOT IN (SELECT k FROM s [RANGE 1 SECOND])": "NOT IN",
    "SELECT k, v FROM s [RANGE 10 SECONDS] WHERE EXISTS (SELECT 1 FROM t [RANGE 5 SECONDS])": "EXISTS",
    "SELECT k, v FROM s [RANGE 9 SECONDS] WHERE v IN (SELECT v FROM s [RANGE 1 SECOND])": "compare the keys",
    "SELECT x FROM s [RANGE 10 SECONDS] UNION SELECT x FROM t [RANGE 10 SECONDS]": "DISTINCT",
    "SELECT k, x FROM s [RANGE 10 SECONDS] UNION SELECT w, x FROM t [RANGE 10 SECONDS]": "DISTINCT",
    "SELECT COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT k FROM t)": "groups",
    "SELECT x FROM s [RANGE 10 SECONDS] INTERSECT SELECT x FROM t [RANGE 10 SECONDS]": "INTERSECT",
    "SELECT k FROM s [RANGE 10 SECONDS] EXCEPT ALL SELECT w FROM t [RANGE 10 SECONDS]": "EXCEPT",
    "SELECT k, x FROM s [RANGE 9 SECONDS] EXCEPT ALL ON (x) SELECT x FROM t [RANGE 9 SECONDS]": "EXCEPT",
    "SELECT k FROM s [RANGE 10 SECONDS] UNION ALL SELECT id FROM names": "every shard has all rows",
    "SELECT id FROM names EXCEPT SELECT k FROM s [RANGE 10 SECONDS]": "every shard has all rows",
    "SELECT x FROM s [RANGE 10 SECONDS] EXCEPT SELECT name FROM names": "does not compare the key",
    "SELECT id FROM names EXCEPT SELECT id FROM rates": "it reads only tables",
    "DSTREAM (SELECT v FROM s [RANGE 10 SECONDS] UNION ALL SELECT w FROM t)": "DSTREAM",
    "SELECT RSTREAM(k, v) FROM s [RANGE 10 SECONDS]": "RSTREAM",
    "SELECT ISTREAM(v) FROM s [RANGE 10 SECONDS]": "ISTREAM",
    "SELECT DSTREAM(v) FROM s [RANGE 10 SECONDS]": "DSTREAM",
    "SELECT DSTREAM(v) FROM s": "DSTREAM",
    "DSTREAM (SELECT v FROM s UNION ALL SELECT w FROM t)": "DSTREAM",
    "SELECT s.k, u.v FROM s [RANGE 10 SECONDS] JOIN u [RANGE 10 SECONDS] ON s.k = u.k": "stream u has no key",
    "SELECT k, COUNT(*) AS n FROM u [RANGE 1 MINUTE] GROUP BY k": "stream u has no key",
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    known = small_engine()
    for sql in DEFINITIONS:
        known.create(sql)
    return known


def streams_of(engine: Engine) -> dict[SourceName, Stream]:
    return {one.name: one for one in engine.catalogue.values() if isinstance(one, Stream)}


def bound(engine: Engine, sql: str) -> Query:
    query = engine.prepare(f"{sql} EMIT CHANGES")
    assert isinstance(query, Query)
    return query


@pytest.mark.parametrize("sql", IN_PARTS)
def test_each_shard_answers_for_its_keys(engine: Engine, sql: str) -> None:
    query = bound(engine, sql)
    assert why_not_in_parts(query, streams_of(engine), KEYS) is None
    assert place(query, streams_of(engine), LAYOUT) == "parts"


@pytest.mark.parametrize(("sql", "reason"), NEEDS_ALL.items())
def test_all_rows_are_needed_in_one_place(engine: Engine, sql: str, reason: str) -> None:
    query = bound(engine, sql)
    found = why_not_in_parts(query, streams_of(engine), KEYS)
    assert found is not None
    assert reason in found
    cut_only = [name for name in query.sources if name in KEYS]
    if cut_only:
        with pytest.raises(NotSupported) as refused:
            place(query, streams_of(engine), LAYOUT)
        assert all(f"--whole {name}" in (refused.value.hint or "") for name in cut_only)
    whole = Layout(4, KEYS, frozenset(KEYS))
    assert place(query, streams_of(engine), whole) == "lane"


def test_without_shards_there_are_selections_alone(engine: Engine) -> None:
    with pytest.raises(NotSupported, match="no shards"):
        place(bound(engine, "SELECT k, v FROM s [RANGE 1 MINUTE]"), streams_of(engine), Layout(0))


def test_keys_that_cannot_cut_are_refused(engine: Engine) -> None:
    known = streams_of(engine)
    check_key(known[SourceName("s")], LAYOUT)
    check_key(known[SourceName("fares")], LAYOUT)
    with pytest.raises(NotSupported, match="no column 'key'"):
        check_key(known[SourceName("s")], Layout(2, {"s": "key"}))
    with pytest.raises(NotSupported, match="versions of a row") as refused:
        check_key(known[SourceName("fares")], Layout(2, {"fares": "fare"}))
    assert "k, dest" in (refused.value.hint or "")
    with pytest.raises(SettingsError):
        Layout(-1)
