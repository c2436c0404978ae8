"""What a text says of its changes is in its query, and nothing else of the query comes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.language.query import Emit, Explain, Query
from engine.language.render import render_emit
from tests.language.fixtures import bind
from tests.language.rendering import render_statement

TUMBLE = "TUMBLE(flights, INTERVAL '1' MINUTE)"
BODIES = [
    "SELECT dest FROM flights WHERE delay > 3",
    "SELECT DISTINCT dest AS d, delay FROM flights [RANGE 1 HOUR] ORDER BY d LIMIT 3",
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > 2",
    "WITH late AS (SELECT * FROM flights WHERE delay > 3) SELECT * FROM late JOIN planes p USING (flight)",
]


def query(sql: str) -> Query:
    statement = bind(sql)
    assert isinstance(statement, Query)
    return statement


def meaning(found: Query) -> str:
    """All of a query but its text."""
    return render_statement(found)


@pytest.mark.parametrize(
    ("clause", "emit"),
    [
        ("EMIT CHANGES", Emit()),
        ("emit changes", Emit()),
        ("EMIT CHANGES INTO Late", Emit("late")),
        ("EMIT CHANGES INTO emit_2", Emit("emit_2")),
        ('EMIT CHANGES INTO "9-late"', Emit("9-late")),
        ("EMIT CHANGES INTO " + "a" * 100, Emit("a" * 100)),
        ("EMIT CHANGES WITH (format = 'debezium')", Emit(format="debezium")),
        (
            "EMIT CHANGES WITH (encoding = 'JSON_Schema', format = 'Diff') INTO b",
            Emit("b", format="diff", encoding="json_schema"),
        ),
        ("EMIT CHANGES WITH (SNAPSHOT = FALSE)", Emit(snapshot=False)),
        ("EMIT CHANGES WITH (snapshot = 'true', encoding = 'avro') INTO a", Emit("a", encoding="avro")),
    ],
)
@pytest.mark.parametrize("body", BODIES)
def test_emit_is_all_that_a_clause_changes(body: str, clause: str, emit: Emit) -> None:
    found = query(f"{body} {clause}")
    assert found.emit == emit
    assert found.operator is None
    assert meaning(replace(found, emit=None)) == meaning(query(body))


@pytest.mark.parametrize(
    "clause", ["EMIT ON WINDOW CLOSE", "EMIT FINAL", "EMIT CHANGES EMIT ON WINDOW CLOSE"]
)
@pytest.mark.parametrize("into", ["", " INTO late"])
def test_on_window_close(clause: str, into: str) -> None:
    body = f"SELECT window_end, COUNT(*) AS n FROM {TUMBLE} [RANGE 1 HOUR] GROUP BY window_end"
    for text in (body, f"ISTREAM ({body})"):
        found = query(f"{text} {clause}{into}")
        assert (found.operator, found.emit) == ("istream", Emit("late" if into else None, on_close=True))


@pytest.mark.parametrize("word", ["ISTREAM", "dstream", "RStream"])
@pytest.mark.parametrize("tail", ["", " EMIT CHANGES INTO a"])
@pytest.mark.parametrize("body", BODIES)
def test_an_operator_stands_around_a_query_or_its_columns(word: str, tail: str, body: str) -> None:
    plain = query(body)
    head, rest = body.rsplit(" FROM flights" if "WITH" not in body else " FROM late", 1)
    head, columns = head.rsplit("SELECT", 1)
    middle = body[len(head) + len("SELECT") + len(columns) : len(body) - len(rest)]
    for sql in (f"{word} ({body}){tail}", f"{head}SELECT {word}({columns}){middle}{rest}{tail}"):
        found = query(sql)
        assert found.operator == word.lower()
        assert found.emit == (Emit("a") if tail else None)
        assert meaning(replace(found, operator=None, emit=None)) == meaning(plain)


def test_a_plan_that_is_asked_for_says_the_same() -> None:
    sql = f"ISTREAM ({BODIES[0]}) EMIT CHANGES INTO a WITH (format = 'diff')"
    explained = bind(f"EXPLAIN {sql}")
    assert isinstance(explained, Explain)
    assert explained.query == query(sql)


def test_a_clause_is_shown_as_it_was_meant() -> None:
    assert render_emit(Emit("a", True, "diff", "avro")) == (
        "emit changes of closed windows into a as diff in avro, after a snapshot"
    )
    assert render_emit(Emit(snapshot=False)) == "emit changes as upsert in json"
