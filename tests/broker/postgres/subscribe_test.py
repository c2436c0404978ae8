"""SUBSCRIBE: an answer and its changes, by cursors, by COPY and as rows that come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.broker.doors import READ_TOKEN, TOKEN, Door
from tests.kafka import wait_until

COLUMNS = ["change_position", "change_at", "change_weight"]


@pytest.fixture(scope="module")
def followed(door: Door) -> Iterator[psycopg.Connection[Any]]:
    """A connection that writes to the stream ``followed``, of which there are queries."""
    with door.connect() as connection:
        connection.execute(
            "CREATE STREAM followed (id BIGINT, s STRING, n STRUCT<x BIGINT>, a ARRAY<BIGINT>)"
        )
        connection.execute("CREATE QUERY followed_rows AS SELECT * FROM followed")
        connection.execute("CREATE QUERY followed_counts AS SELECT s, COUNT(*) AS n FROM followed GROUP BY s")
        connection.execute("INSERT INTO followed (id, s) VALUES (1, 'a'), (2, 'b')")
        counts = "SELECT * FROM followed_counts"
        wait_until(lambda: len(connection.execute(counts).fetchall()) == 2, what="both are read")
        yield connection


def rows(found: list[Any]) -> list[Any]:
    return [row[2:] for row in found]


def standing(door: Door) -> tuple[int, int]:
    """How many follow, and how many queries stand."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    told = door.broker.http.get("/metrics", headers=headers).text.splitlines()
    (feeds,) = (line.split()[1] for line in told if line.startswith("tureen_feeds_open "))
    queries = door.broker.http.get("/status", headers=headers).json()["queries"]["RUNNING"]
    return int(float(feeds)), queries


def test_a_cursor_gives_the_answer_then_its_changes(door: Door, followed: psycopg.Connection[Any]) -> None:
    with door.connect() as connection:
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE followed_counts")
        first = connection.execute("FETCH 1 FROM c")
        assert [one.name for one in first.description or ()] == [*COLUMNS, "s", "n"]
        assert [one.type_code for one in first.description or ()] == [25, 1184, 23, 25, 20]
        taken = first.fetchall() + connection.execute("FETCH ALL FROM c").fetchall()
        assert sorted(rows(taken)) == [(1, "a", 1), (1, "b", 1)]
        assert [row[0] is None for row in taken] == [True, False]  # a step is whole at its last row
        assert connection.execute("FETCH 5 FROM c WITH (timeout = '0s')").fetchall() == []
        followed.execute("INSERT INTO followed (id, s) VALUES (3, 'a')")
        changed = connection.execute("FETCH 5 FROM c").fetchall()
        assert rows(changed) == [(-1, "a", 1), (1, "a", 2)]
        followed.execute("INSERT INTO followed (id, s) VALUES (4, 'c')")
        assert connection.execute("MOVE 1 FROM c").statusmessage == "MOVE 1"
        connection.execute("CLOSE c")

        connection.execute(
            f"DECLARE again CURSOR FOR SUBSCRIBE TO followed_counts WITH (since = '{changed[-1][0]}')"
        )
        assert rows(connection.execute("FETCH ALL FROM again").fetchall()) == [(1, "c", 1)]
        connection.execute("DECLARE b BINARY CURSOR FOR SUBSCRIBE followed_counts WITH (snapshot = false)")
        assert connection.execute("FETCH 9 FROM b WITH (timeout = '1ms')").fetchall() == []
        followed.execute("INSERT INTO followed (id, s) VALUES (5, 'd')")
        assert rows(connection.execute("FETCH 9 FROM b").fetchall()) == [(1, "d", 1)]


def test_a_select_is_followed_for_as_long_as_its_cursor_is_open(
    door: Door, followed: psycopg.Connection[Any]
) -> None:
    before = standing(door)
    with door.connect() as connection, connection.transaction(), connection.cursor("named") as cursor:
        cursor.itersize = 10
        cursor.execute("SUBSCRIBE (SELECT id, n, a FROM followed WHERE id IN (1, 70))")
        assert rows([cursor.fetchone()]) == [(1, 1, None, None)]
        assert standing(door) == (before[0] + 1, before[1] + 1)
        door.broker.send("followed", [{"id": 70, "n": {"x": 5}, "a": [1, None]}])
        assert rows([cursor.fetchone()]) == [(1, 70, {"x": 5}, [1, None])]
    wait_until(lambda: standing(door) == before, what="it is ended")
    lost = door.connect()
    lost.execute("DECLARE c CURSOR FOR SUBSCRIBE (SELECT id FROM followed)")
    assert standing(door)[0] == before[0] + 1
    lost.close()
    wait_until(lambda: standing(door) == before, what="it is ended with its connection")


def test_copy_and_plain_rows_come_until_they_are_canceled(
    door: Door, followed: psycopg.Connection[Any]
) -> None:
    copied, streamed = [], []

    def copy(connection: psycopg.Connection[Any]) -> None:
        sql = "COPY (SUBSCRIBE followed_rows WITH (snapshot = false)) TO STDOUT (FORMAT csv)"
        with connection.cursor().copy(sql) as lines:
            threading.Timer(0.2, followed.execute, ["INSERT INTO followed (id, s) VALUES (80, 'x')"]).start()
            for line in lines:
                copied.append(bytes(line).decode().split(",", 2)[2])
                connection.cancel()

    def stream(connection: psycopg.Connection[Any]) -> None:
        for row in connection.cursor().stream("SUBSCRIBE (SELECT id FROM followed WHERE id = %s)", (80,)):
            streamed.append(row[2:])
            connection.cancel()

    with door.connect() as connection:
        with pytest.raises(psycopg.errors.QueryCanceled):
            copy(connection)
        assert copied == ["1,80,x,,\n"]
        with pytest.raises(psycopg.errors.QueryCanceled):
            stream(connection)
        assert streamed == [(1, 80)]
        connection.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute("SUBSCRIBE followed_rows")


def test_who_only_reads_follows_by_handle_alone(door: Door, followed: psycopg.Connection[Any]) -> None:
    with door.connect(READ_TOKEN) as connection:
        connection.execute(f'DECLARE c CURSOR FOR SUBSCRIBE "{door.handle}"')
        assert connection.execute("FETCH 1 FROM c WITH (timeout = '1ms')").description is not None
        for sql in ("SUBSCRIBE followed_rows", "SUBSCRIBE (SELECT id FROM followed)", "SUBSCRIBE followed"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql)


def test_what_is_refused_and_what_ends(door: Door, followed: psycopg.Connection[Any]) -> None:
    with door.connect() as connection:
        for sql, state in {
            "SUBSCRIBE": "42601",
            "SUBSCRIBE nowhere": "42P01",
            "SUBSCRIBE (SELECT * FROM followed_rows LIMIT 1)": "0A000",
            "SUBSCRIBE (SELECT s FROM followed_counts WHERE n > 1)": "0A000",
            "SUBSCRIBE followed_rows WITH (progress)": "0A000",
            "SUBSCRIBE followed_rows WITH (since = 'x')": "22023",
            "FETCH 1 FROM c WITH (timeout = 'soon')": "42704",
        }.items():
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(sql)
            assert refused.value.diag.sqlstate == state, sql
        connection.execute("CREATE QUERY followed_briefly AS SELECT id FROM followed WHERE id = -1")
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE followed_briefly")
        followed.execute("DROP QUERY followed_briefly")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("FETCH 1 FROM c")
