"""Where a sample may be introduced, lowered and pushed down to, rule by rule, over texts and their trees."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from engine.engine import Engine
from engine.language.dialect import parse_tree
from engine.language.grammar import nodes
from engine.language.places import Text
from engine.model.limits import Limits
from engine.overload.proposals.propose import Rule
from engine.overload.proposals.sampling import sample_introduced, sample_lowered, sample_pushed_down
from engine.overload.proposals.sources_in_text import sources_of
from engine.overload.proposals.text import Tokens
from tests.capacities import small_engine

HOUR = "[RANGE 1 HOUR]"


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = small_engine()
    for name in "st":
        made.create(
            f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
        )
    made.create("CREATE TABLE d (k STRING, name STRING, PRIMARY KEY (k))")
    return made


def texts(engine: Engine, rule: Rule, sql: str) -> list[str]:
    """What a rule makes of a text. A sample is put into the tree of the text that has blanks in its place."""
    clauses = list(re.finditer(r"SAMPLE\([^)]*\)", sql))
    bare = sql
    for clause in clauses:
        bare = bare[: clause.start()] + " " * len(clause.group()) + bare[clause.end() :]
    tree = parse_tree(Text(bare), Limits())
    items = list(tree.find_all(nodes.FromItem))
    for clause in clauses:
        # That of the item that ends last before it.
        before = [item for item in items if _end(bare, item) <= clause.start()]
        sample = exp.Literal(this="", is_string=False)
        sample.meta["start"] = clause.start()
        max(before, key=lambda item: (_end(bare, item), -item.meta["start"])).set("sample", sample)
    tokens = Tokens(sql)
    return [found.sql for source in sources_of(tree, engine.catalogue) for found in rule(sql, tokens, source)]


def _end(sql: str, item: nodes.FromItem) -> int:
    """Where the source of an item ends: its name, or the bracket of its subquery."""
    start = int(item.args["this"].meta["start"])
    if isinstance(item.args["this"], exp.Identifier):
        return start + len(str(item.args["this"].this))
    return sql.rindex(")") + 1


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT v FROM s {HOUR} WHERE v > 1",
        f"SELECT x.v FROM (SELECT v FROM s {HOUR}) AS x",
        f"SELECT s.v, d.name FROM s {HOUR} JOIN d ON s.k = d.k",
        f"SELECT s.v, d.name FROM s {HOUR} LEFT JOIN d USING (k)",
    ],
)
def test_sample_goes_to_rows_that_are_each_one_of_the_answer(engine: Engine, sql: str) -> None:
    assert texts(engine, sample_introduced, sql) == [sql.replace("FROM s", "FROM s SAMPLE(10)")]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT DISTINCT v FROM s {HOUR}",
        f"SELECT COUNT(*) AS n FROM s {HOUR}",
        f"SELECT k FROM s {HOUR} GROUP BY k",
        f"SELECT s.v FROM s {HOUR} JOIN t {HOUR} ON s.k = t.k",
        f"SELECT s.v, d.name FROM s {HOUR} JOIN d ON s.k = d.name",
        f"SELECT s.v, d.name FROM s {HOUR} JOIN d ON s.k = d.k OR s.v = 1",
        f"SELECT s.v, d.name FROM s {HOUR} RIGHT JOIN d ON s.k = d.k",
        f"SELECT v FROM s {HOUR} WHERE v IN (SELECT v FROM t {HOUR})",
        f"SELECT v FROM s {HOUR} ORDER BY v LIMIT 3",
        f"SELECT k FROM s {HOUR} INTERSECT ALL SELECT k FROM t {HOUR}",
        f"SELECT k FROM s {HOUR} UNION SELECT k FROM t {HOUR}",
        f"SELECT k FROM s {HOUR} UNION ALL SELECT k FROM t {HOUR}",
        f"SELECT v FROM s SAMPLE(20) {HOUR}",
    ],
)
def test_sample_stays_away_where_it_would_have_a_bias(engine: Engine, sql: str) -> None:
    assert texts(engine, sample_introduced, sql) == []


@pytest.mark.parametrize(
    ("written", "lower"),
    [
        ("SAMPLE(20)", "SAMPLE(10)"),
        ("SAMPLE(5, 7)", "SAMPLE(2.5, 7)"),
        ("SAMPLE(100 DOWN TO 5)", "SAMPLE(5)"),
        ("SAMPLE(100 DOWN TO 5, 7)", "SAMPLE(5, 7)"),
    ],
)
def test_rate_is_halved_or_lowered_to_what_is_allowed(engine: Engine, written: str, lower: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM s {written} {HOUR}"
    assert texts(engine, sample_lowered, sql) == [sql.replace(written, lower)]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT DISTINCT v FROM s SAMPLE(20) {HOUR}",
        f"SELECT v FROM t {HOUR} WHERE v NOT IN (SELECT v FROM s SAMPLE(20) {HOUR})",
        f"SELECT v FROM s {HOUR}",
    ],
)
def test_rate_stays_where_a_loss_may_make_the_answer_grow(engine: Engine, sql: str) -> None:
    assert texts(engine, sample_lowered, sql) == []


def test_sample_of_a_subquery_goes_to_its_source(engine: Engine) -> None:
    sql = "SELECT x.v FROM (SELECT v FROM s WHERE v > 1) SAMPLE(20) AS x"
    assert texts(engine, sample_pushed_down, sql) == [
        "SELECT x.v FROM (SELECT v FROM s SAMPLE(20) WHERE v > 1) AS x"
    ]
    joined = "SELECT x.v FROM (SELECT s.v FROM s JOIN d ON s.k = d.k) SAMPLE(20) AS x"
    assert texts(engine, sample_pushed_down, joined) == [
        "SELECT x.v FROM (SELECT s.v FROM s SAMPLE(20) JOIN d ON s.k = d.k) AS x"
    ]


@pytest.mark.parametrize(
    "inside",
    [
        "SELECT DISTINCT v FROM s",
        "SELECT v FROM s GROUP BY v",
        "SELECT s.v FROM s JOIN t ON s.k = t.k",
        "SELECT v FROM s WHERE v IN (SELECT v FROM t)",
        "SELECT v FROM s ORDER BY v LIMIT 3",
        "SELECT v FROM s UNION ALL SELECT v FROM t",
    ],
)
def test_sample_of_a_subquery_stays_above_what_is_no_row_of_a_source(engine: Engine, inside: str) -> None:
    assert texts(engine, sample_pushed_down, f"SELECT x.v FROM ({inside}) SAMPLE(20) AS x") == []
