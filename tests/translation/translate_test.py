"""Statements of five systems: what is taken as it is, written otherwise or refused, and that answers agree.

The page of compatibility has a table for each system, checked here; ``TUREEN_UPDATE_GOLDEN=1`` writes them.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from broker.commands.translate import translate as command
from engine.engine import Engine
from engine.language.query import CreateFromQuery, CreateStream, Query
from engine.language.statements import parse
from engine.language.translation.dialects import DIALECTS, DialectName
from engine.language.translation.translate import Translated, translate
from engine.model.batch import Batch, versions
from engine.model.limits import Limits
from engine.model.source import Derived, Stream
from tests.capacities import small_engine
from tests.translation.questions import ABOUT, OURS, SCHEMA, THEIRS
from tureen.errors import TureenError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
NAMES = {
    "flink": "Flink SQL",
    "ksqldb": "ksqlDB",
    "materialize": "Materialize",
    "risingwave": "RisingWave",
    "postgres": "PostgreSQL",
}
MINUTE_MS = 60_000
FIRST_MS = 1_700_000_000_000 // (60 * MINUTE_MS) * (60 * MINUTE_MS)


def catalogue() -> dict[str, Stream | Derived]:
    found: dict[str, Stream | Derived] = {}
    for sql in SCHEMA:
        statement = parse(sql, found, Limits())
        assert isinstance(statement, CreateStream)
        found[statement.stream.name] = statement.stream
    return found


CATALOGUE = catalogue()


def outcome(dialect: DialectName, question: str) -> Translated | TureenError:
    try:
        return translate(THEIRS[dialect][question], dialect, Limits(), CATALOGUE)
    except TureenError as refused:
        return refused


def ingest(engine: Engine, name: str, columns: dict[str, list[object]], times: list[int]) -> None:
    made = engine.catalogue[name]
    assert isinstance(made, Stream)
    arrays = [pa.array(columns[field.name]).cast(field.type.arrow) for field in made.schema]
    table = pa.Table.from_arrays(arrays, schema=made.schema.arrow)
    batch = Batch.from_arrow(made.schema, table, np.zeros(len(times)), np.arange(len(times)), times)
    engine.ingest(name, versions(made, batch) if made.is_table else batch, max(times))


@pytest.fixture(scope="module")
def engine() -> Engine:
    """Three hundred orders, a payment for each third, and three of four customers; a minute apart, about."""
    one = small_engine()
    for sql in SCHEMA:
        one.create(sql)
    random = np.random.default_rng(7)
    count = 300
    times = [FIRST_MS + int(each) for each in np.cumsum(random.integers(1_000, 4 * MINUTE_MS, count))]
    customers = [None if each == 4 else "abcd"[each] for each in random.integers(0, 5, count)]
    ingest(
        one,
        "orders",
        {
            "id": list(range(count)),
            "customer": customers,
            "city": ["xyz"[each] for each in random.integers(0, 3, count)],
            "country": ["ch"] * count,
            "price": [float(each) for each in random.permutation(count)],
            "at": times,
        },
        times,
    )
    paid = [time + int(random.integers(0, 10 * MINUTE_MS)) for time in times[::3]]
    order = np.argsort(paid)
    ingest(
        one,
        "payments",
        {
            "order_id": [int(3 * each) for each in order],
            "amount": [float(each) for each in order],
            "paid": [paid[each] for each in order],
        },
        [paid[each] for each in order],
    )
    named = ["a", "b", "c"]
    ingest(one, "customers", {"customer": named, "name": [each.upper() for each in named]}, [max(paid)] * 3)
    return one


def answer(engine: Engine, sql: str) -> pa.Table:
    """The answer of a SELECT, or of the one that a definition has."""
    statement = parse(sql, CATALOGUE, Limits())
    if isinstance(statement, CreateFromQuery):
        sql = statement.derived.sql
    else:
        assert isinstance(statement, Query)
    engine.register("q", sql.rstrip(";"))
    table = engine.view().snapshot("q").table
    engine.unregister("q")
    return table


@pytest.mark.parametrize("question", OURS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_translated_questions_have_our_answer(engine: Engine, dialect: DialectName, question: str) -> None:
    found = outcome(dialect, question)
    if isinstance(found, TureenError):
        assert found.hint
        assert found.line == 1
        assert found.column
        return
    wanted, given = answer(engine, OURS[question]), answer(engine, found.sql)
    names = [name for name in wanted.column_names if name in given.column_names]
    assert names
    rows, expected = (
        sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=repr)
        for table in (given, wanted)
    )
    assert len(expected) > 1 or question == "last_ten_minutes"
    if dialect in ("postgres", "materialize") and question in ("tumbling", "session"):
        # There a window is in the answer before it closes: the last one, of each customer.
        opened = Counter(rows) - Counter(expected)
        assert 0 < opened.total() <= len("abcd") + 1
        rows = sorted((Counter(rows) - opened).elements(), key=repr)
    assert rows == expected


def test_most_questions_are_answered_in_each_dialect() -> None:
    answered = {
        dialect: sum(not isinstance(outcome(dialect, question), TureenError) for question in OURS)
        for dialect in DIALECTS
    }
    assert answered == {"flink": 10, "ksqldb": 7, "materialize": 8, "risingwave": 9, "postgres": 9}


def rows_of(dialect: DialectName) -> str:
    """The table of a system, as the page has it."""
    lines = [f"### {NAMES[dialect]}", "", "| question | written there | here |", "|---|---|---|"]
    for question, about in ABOUT.items():
        text, found = THEIRS[dialect][question], outcome(dialect, question)
        if isinstance(found, TureenError):
            here = f"refused: {found.message}; {found.hint}"
        elif found.sql == text:
            here = "as it is"
        else:
            here = f"`{found.sql}`"
        if isinstance(found, Translated) and found.remarks:
            here += "; " + "; ".join(found.remarks)
        lines.append(f"| {about} | `{cell(text)}` | {cell(here)} |")
    return "\n".join(lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_page_has_what_becomes_of_each_question() -> None:
    page = PAGE.read_text(encoding="utf-8")
    tables = "\n\n".join(rows_of(dialect) for dialect in DIALECTS)
    if os.environ.get("TUREEN_UPDATE_GOLDEN") == "1":
        page = re.sub(r"(?s)### Flink SQL\n.*?(?=\n## )", lambda _: tables + "\n", page)
        PAGE.write_text(page, encoding="utf-8")
    assert tables in page


@pytest.mark.parametrize(
    ("dialect", "given", "written"),
    [
        ("postgres", "SELECT DATE_BIN('5 minutes', at, '2000-01-01') AS five FROM orders",
         "SELECT DATE_BIN(INTERVAL '5 minutes', at, '2000-01-01') AS five FROM orders"),
        ("ksqldb", "CREATE STREAM s AS SELECT id FROM orders WHERE price > 1 EMIT CHANGES",
         "CREATE STREAM s AS SELECT id FROM orders WHERE price > 1"),
        ("ksqldb", "SELECT 'EMIT CHANGES' AS a FROM orders -- WINDOW TUMBLING (SIZE 1 HOUR)\nEMIT CHANGES",
         "SELECT 'EMIT CHANGES' AS a FROM orders -- WINDOW TUMBLING (SIZE 1 HOUR)\nEMIT CHANGES"),
        ("flink", "SELECT `o`.`id` AS `it's; \"x\"`, '`id`' FROM `orders` AS `o` -- `id`",
         "SELECT \"o\".\"id\" AS \"it's; \"\"x\"\"\", '`id`' FROM \"orders\" AS \"o\" -- `id`"),
        ("postgres", "SELECT (city || 'x')::varchar(2) AS x FROM orders",
         "SELECT SUBSTRING((city || 'x')::STRING, 1, 2) AS x FROM orders"),
        ("postgres", "SELECT city::varchar(5)::varchar(1) AS x FROM orders",
         "SELECT SUBSTRING(SUBSTRING(city::STRING, 1, 5)::STRING, 1, 1) AS x FROM orders"),
        ("postgres", "SELECT UPPER(orders.city)::text::VARCHAR (3) AS y FROM orders",
         "SELECT SUBSTRING(UPPER(orders.city)::text::STRING, 1, 3) AS y FROM orders"),
        ("postgres", "SELECT id FROM orders WHERE CAST(city AS varchar(4)) = 'a'::varchar(1)",
         "SELECT id FROM orders WHERE SUBSTRING(CAST(city AS STRING), 1, 4) = SUBSTRING('a'::STRING, 1, 1)"),
        ("flink", "SELECT CAST(id AS VARCHAR(2)) AS x FROM orders",
         "SELECT SUBSTRING(CAST(id AS STRING), 1, 2) AS x FROM orders"),
        ("ksqldb", "SELECT `id` FROM orders", 'SELECT "id" FROM orders'),
        ("ksqldb", "SELECT STRUCT(id AS a, STRUCT(city AS c) AS b)->b->c AS x, '->' AS y FROM orders",
         "SELECT STRUCT(id AS a, STRUCT(city AS c) AS b).b.c AS x, '->' AS y FROM orders"),
        ("ksqldb", "CREATE STREAM `s` (id BIGINT KEY, v VARCHAR) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='json')",
         "CREATE STREAM \"s\" (id BIGINT KEY, v VARCHAR) WITH (topic = 'x')"),
        ("ksqldb", ("CREATE TABLE s (k STRING PRIMARY KEY, at TIMESTAMP) WITH (kafka_topic = 'x', "
         "FORMAT = 'avro', PARTITIONS = 4, REPLICAS = 3, TIMESTAMP = 'at') ;"),
         ("CREATE TABLE s (k STRING PRIMARY KEY, at TIMESTAMP) WITH (topic = 'x', format = 'avro', "
         "key_format = 'avro', partitions = 4, timestamp = 'at') ;")),
        ("ksqldb", "CREATE SOURCE STREAM s WITH (KAFKA_TOPIC='x', VALUE_FORMAT='AVRO', PARTITIONS=2)",
         "CREATE STREAM s FROM TOPIC 'x' WITH (format = 'avro', timestamp = '_timestamp')"),
        ("ksqldb", "CREATE TABLE IF NOT EXISTS s WITH (KAFKA_TOPIC='x', KEY_FORMAT='JSON_SR')",
         "CREATE TABLE IF NOT EXISTS s FROM TOPIC 'x' WITH (key_format = 'json-schema')"),
        ("ksqldb", "CREATE TABLE s WITH (KAFKA_TOPIC='x', FORMAT='JSON')", "CREATE TABLE s FROM TOPIC 'x'"),
        ("ksqldb", ("CREATE STREAM s (a INT, b STRING) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='DELIMITED', "
         "VALUE_DELIMITER='TAB', KEY_FORMAT='KAFKA')"),
         "CREATE STREAM s (a INT, b STRING) WITH (topic = 'x', format = 'csv', delimiter = '\t')"),
    ],
)  # fmt: skip
def test_what_is_rewritten(dialect: DialectName, given: str, written: str) -> None:
    assert translate(given, dialect, Limits(), CATALOGUE).sql == written


def test_what_differs_of_sources_is_told() -> None:
    def remarks(options: str) -> str:
        sql = f"CREATE STREAM s (a STRING KEY, v DOUBLE) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='JSON'{options})"
        return " ".join(translate(sql, "ksqldb", Limits(), CATALOGUE).remarks)

    assert "Kafka's timestamp" in remarks("")
    assert "REPLICAS" in remarks(", REPLICAS=2")
    assert "format KAFKA" in remarks(", KEY_FORMAT='KAFKA'")
    with pytest.raises(TureenError, match="of_something"):
        remarks(", OF_SOMETHING=1")


def test_a_refusal_has_its_place_in_what_was_given() -> None:
    sql = """SELECT o.id, price
    FROM orders o
    JOIN customers FOR SYSTEM_TIME AS OF o.at AS c ON o.custmer = c.customer"""
    with pytest.raises(TureenError) as refused:
        translate(sql, "flink", Limits(), CATALOGUE)
    lines = sql.split("\n")
    assert (refused.value.line, refused.value.column) == (3, lines[2].index("o.custmer") + 3)


def test_the_command(tmp_path: Path) -> None:
    file, schema = tmp_path / "theirs.sql", tmp_path / "ours.sql"
    schema.write_text(";\n".join(SCHEMA) + ";")
    file.write_text(
        "CREATE TABLE totals AS SELECT customer, SUM(price) AS total FROM orders GROUP BY customer "
        "EMIT CHANGES;\nSELECT total FROM totals EMIT CHANGES;\n"
        "SELECT id\n  FROM orders WHERE prize > 3;\nSELECT id FROM orders;"
    )
    run = CliRunner().invoke(command, ["--from", "ksqldb", "--schema", str(schema), str(file)])
    assert run.exit_code == 1
    assert run.stdout.splitlines() == [
        "CREATE TABLE totals AS SELECT customer, SUM(price) AS total FROM orders GROUP BY customer;",
        "SELECT total FROM totals EMIT CHANGES;",
        "SELECT id FROM orders;",
    ]
    assert "line 4, column 21" in run.stderr
    assert "did you mean price?" in run.stderr
    told = CliRunner().invoke(command, ["--from", "flink", "--json", "-"], input="SELECT id FROM anything")
    assert json.loads(told.stdout) == {"sql": "SELECT id FROM anything", "remarks": [], "same": True}
    assert "are not checked" in told.stderr
    assert "are not checked" not in run.stderr


def test_a_name_that_does_not_end_has_its_place() -> None:
    with pytest.raises(TureenError) as refused:
        translate("SELECT id,\n  `id FROM orders", "flink", Limits(), CATALOGUE)
    assert (refused.value.line, refused.value.column) == (2, 3)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file, schema = tmp_path / "theirs.sql", tmp_path / "ours.sql"
    schema.write_text(";\n".join(SCHEMA) + ";", encoding="utf-8-sig")
    file.write_text("SELECT id FROM orders;", encoding="utf-8-sig")
    run = CliRunner().invoke(command, ["--from", "flink", "--schema", str(schema), str(file)])
    assert (run.exit_code, run.stdout) == (0, "SELECT id FROM orders;\n"), run.output
