"""``FOR SYSTEM_TIME FROM a TO b`` for PostgreSQL's clients, and for Flight SQL's."""

from __future__ import annotations

from datetime import UTC

import psycopg
import pytest
from adbc_driver_flightsql import DatabaseOptions, dbapi

from tests.broker.doors import TOKEN, Door


@pytest.mark.parametrize("asked", ["SELECT * FROM all_types", "SELECT id FROM everything WHERE id > 1"])
def test_an_answer_over_a_period(door: Door, asked: str) -> None:
    sql = f"{asked} FOR SYSTEM_TIME FROM '{{:%Y-%m-%d %H:%M:%S}}' TO NOW;"
    with door.connect() as connection:
        now = connection.execute(asked).fetchall()
        began = connection.execute("SELECT now() - interval '1 hour'").fetchone()
        assert began is not None
        cursor = connection.execute(sql.format(began[0].astimezone(UTC)))
        rows = cursor.fetchall()
        assert [one.name for one in cursor.description or ()][-2:] == ["valid_from", "valid_to"]
        assert sorted(map(repr, now)) == sorted(repr(row[:-2]) for row in rows)
        assert all(began[0] < row[-2] < row[-1] for row in rows)
        lines = connection.execute(f"SELECT 1; {sql.format(began[0].astimezone(UTC))}")
        assert lines.nextset()
        assert lines.fetchall()[0][:-1] == rows[0][:-1]
        with pytest.raises(psycopg.Error, match="a period is asked of a whole answer"):
            connection.execute(f"SELECT id FROM all_types WHERE id > 1 FOR SYSTEM_TIME FROM {5} TO NOW")
        with pytest.raises(psycopg.Error, match="is not an instant"):
            connection.execute(f"{asked} FOR SYSTEM_TIME FROM $1 TO NOW")
        with pytest.raises(psycopg.Error, match="a period ends"):
            connection.execute(f"SUBSCRIBE ({asked} FOR SYSTEM_TIME FROM 5 TO NOW)")
    header = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {TOKEN}"}
    with (
        dbapi.connect(f"grpc://127.0.0.1:{door.flight_port}", header, autocommit=True) as flight,
        flight.cursor() as one,
    ):
        one.execute(sql.format(began[0].astimezone(UTC)).rstrip(";"))
        assert one.fetch_arrow_table().num_rows == len(rows)
