"""Clients of Flight SQL: Arrow's own, and ADBC's driver."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from adbc_driver_flightsql import DatabaseOptions, dbapi

from broker.flight.messages import packed
from tests.broker.doors import READ_TOKEN, RECORDS, TOKEN, Door
from tests.broker.running import unique_name
from tests.kafka import wait_until

NO_UTF8 = packed("CommandStatementQuery", query="SELECT ??").replace(b"??", b"\xff\xfe")


def connect(door: Door, token: str = TOKEN, **options: str) -> dbapi.Connection:
    header = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {token}"}
    return dbapi.connect(f"grpc://127.0.0.1:{door.flight_port}", header | options, autocommit=True)


@pytest.fixture
def adbc(door: Door) -> Iterator[dbapi.Connection]:
    with connect(door) as connection:
        yield connection


@pytest.fixture
def client(door: Door) -> Iterator[flight.FlightClient]:
    with flight.connect(f"grpc://127.0.0.1:{door.flight_port}") as one:
        yield one


def options(token: str | None = TOKEN) -> flight.FlightCallOptions:
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return flight.FlightCallOptions(timeout=60, headers=headers)


def asked(client: flight.FlightClient, sql: str, token: str = TOKEN) -> pa.Table:
    """The rows of a text, whose columns are those that were told before."""
    command = flight.FlightDescriptor.for_command(packed("CommandStatementQuery", query=sql))
    info = client.get_flight_info(command, options(token))
    table = client.do_get(info.endpoints[0].ticket, options(token)).read_all()
    if info.schema is not None and len(info.schema):
        assert table.schema.equals(info.schema)
    return table


def fetched(connection: dbapi.Connection, sql: str, values: Any = None) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        table: pa.Table = cursor.fetch_arrow_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize("sql", ["SELECT * FROM all_types", "SELECT * FROM everything"])
def test_columns_of_every_type_are_as_http_gives_them(
    door: Door, client: flight.FlightClient, sql: str
) -> None:
    found = asked(client, sql).sort_by("id")
    reply = door.broker.http.get(
        f"/queries/{door.handle}/snapshot?format=arrow", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    expected = pa.ipc.open_stream(reply.content).read_all().sort_by("id")
    assert found.cast(expected.schema).equals(expected)
    assert found.num_rows == len(RECORDS)


def test_adbc_asks_and_changes(adbc: dbapi.Connection) -> None:
    rows = fetched(adbc, "SELECT customer, n FROM per_customer ORDER BY customer")
    assert [row["customer"] for row in rows][:2] == ["ann", "bob"]
    made, sums = unique_name(), unique_name()
    fetched(adbc, f"CREATE TABLE {made} (k BIGINT, v DOUBLE, PRIMARY KEY (k))")
    assert fetched(adbc, f"INSERT INTO {made} VALUES (1, 0.5), (2, 1.5)") == []
    wait_until(lambda: fetched(adbc, f"SELECT SUM(v) AS s FROM {made}") == [{"s": 2.0}], 60, "both are read")
    (handle,) = fetched(adbc, f"CREATE QUERY {sums} AS SELECT SUM(v) AS s FROM {made}")
    assert handle["message"].startswith("handle: ")
    wait_until(lambda: fetched(adbc, f"SELECT * FROM {sums}") == [{"s": 2.0}], 60, "the query stands")
    with adbc.cursor() as cursor:
        cursor.execute(f"DROP QUERY {sums}")
    with pytest.raises(dbapi.Error, match=sums):
        fetched(adbc, f"SELECT * FROM {sums}")


def test_parameters_have_types(adbc: dbapi.Connection) -> None:
    sql = "SELECT id, s FROM everything WHERE id = $1 AND v = $2"
    assert [row["id"] for row in fetched(adbc, sql, (3, -0.1))] == [3]
    found = fetched(adbc, "SELECT $1 = customer AS same FROM per_customer WHERE customer = 'ann'", ("ann",))
    assert found == [{"same": True}]
    at = datetime(2013, 1, 31, 9, 15, 0, 123_000, tzinfo=UTC)
    values = (at, date(2013, 1, 31), Decimal("12345.60"), b"\x00\x01\xff", True)
    sql = "SELECT id FROM everything WHERE at = $1 AND day = $2 AND d = $3 AND raw = $4 AND b = $5"
    assert fetched(adbc, sql, values) == [{"id": 1}]


def test_many_rows_are_written_by_one_call(adbc: dbapi.Connection) -> None:
    many = unique_name()
    fetched(adbc, f"CREATE STREAM {many} (k BIGINT, name STRING)")
    rows = [(k, None if k % 7 == 0 else f"name {k}") for k in range(500)]
    with adbc.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {many} (k, name) VALUES ($1, $2)", rows)
        assert cursor.rowcount == 500
    sql = f"SELECT COUNT(*) AS n, COUNT(name) AS names, SUM(k) AS k FROM {many}"
    expected = {"n": 500, "names": sum(name is not None for _, name in rows), "k": sum(range(500))}
    wait_until(lambda: fetched(adbc, sql) == [expected], 60, "all are read")


def test_the_catalogue(adbc: dbapi.Connection) -> None:
    objects = adbc.adbc_get_objects(depth="all", table_name_filter="orders").read_all().to_pylist()
    (catalog,) = objects
    assert catalog["catalog_name"] == "tureen"
    schemas = {one["db_schema_name"]: one["db_schema_tables"] for one in catalog["catalog_db_schemas"]}
    (orders,) = schemas["public"]
    assert (orders["table_name"], orders["table_type"]) == ("orders", "TABLE")
    assert [one["column_name"] for one in orders["table_columns"]] == ["id", "customer", "total"]
    assert set(adbc.adbc_get_table_types()) == {"TABLE", "STREAM", "VIEW", "QUERY"}
    assert adbc.adbc_get_info()["vendor_name"] == "Tureen"
    schema = adbc.adbc_get_table_schema("orders", db_schema_filter="public")
    assert schema.field("total").type == pa.decimal128(10, 2)


def test_changes_are_followed_for_as_long_as_they_are_read(
    door: Door, client: flight.FlightClient, adbc: dbapi.Connection
) -> None:
    name = unique_name()
    fetched(adbc, f"CREATE STREAM {name} (k BIGINT)")
    fetched(adbc, f"INSERT INTO {name} VALUES (1)")
    wait_until(lambda: fetched(adbc, f"SELECT COUNT(*) AS n FROM {name}") == [{"n": 1}], 60, "it is read")
    command = packed("CommandStatementQuery", query=f"SUBSCRIBE (SELECT k FROM {name})")
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options())
    reader = client.do_get(info.endpoints[0].ticket, options())

    def next_rows() -> list[tuple[int, int]]:
        while not (data := reader.read_chunk().data).num_rows:
            pass
        return [(row["change_weight"], row["k"]) for row in data.to_pylist()]

    assert next_rows() == [(1, 1)]
    fetched(adbc, f"INSERT INTO {name} VALUES (2)")
    assert next_rows() == [(1, 2)]
    before = calls(door)
    reader.cancel()
    wait_until(lambda: calls(door) < before, 30, "the call has ended")


def test_rows_above_now_are_told(
    door: Door, client: flight.FlightClient, adbc: dbapi.Connection, name: str
) -> None:
    door.broker.admin.ensure_source_topic(name)
    door.broker.send(name, [{"k": k, "ts": f"2026-01-31T09:15:0{k}Z"} for k in range(3)])
    fetched(
        adbc,
        f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (topic = '{name}', timestamp = 'ts', "
        "lateness = '5 seconds', idle_timeout = '1 hour')",
    )
    told = [f"incomplete: {name} is catching up: all 3 records read, 3 rows wait for NOW"]
    assert json.loads(asked(client, f"SELECT * FROM {name}").schema.metadata[b"tureen.warnings"]) == told
    assert not asked(client, "SELECT 1 AS one").schema.metadata


def calls(door: Door) -> int:
    told = door.broker.http.get("/status", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    (count,) = (one["connections"] for one in told["doors"] if one["protocol"] == "flight-sql")
    return int(count)


def test_tokens(door: Door, client: flight.FlightClient) -> None:
    for token in (None, "wrong", READ_TOKEN + "x"):
        with pytest.raises(flight.FlightUnauthenticatedError, match="token"):
            client.get_flight_info(flight.FlightDescriptor.for_command(b""), options(token))
    with pytest.raises(flight.FlightUnauthorizedError):  # by its name, as over HTTP
        asked(client, "SELECT * FROM all_types", READ_TOKEN)
    assert asked(client, f'SELECT * FROM "{door.handle}"', READ_TOKEN).num_rows == len(RECORDS)
    for sql in ("SELECT * FROM everything", "CREATE STREAM refused (k BIGINT)", "DROP TABLE orders"):
        with pytest.raises(flight.FlightUnauthorizedError):
            asked(client, sql, READ_TOKEN)
    with dbapi.connect(
        f"grpc://127.0.0.1:{door.flight_port}", {"username": "ann", "password": TOKEN}, autocommit=True
    ) as connection:
        assert fetched(connection, "SELECT * FROM per_customer WHERE customer = 'bob'") == [
            {"customer": "bob", "n": 1}
        ]
    with (
        pytest.raises(dbapi.Error),
        dbapi.connect(
            f"grpc://127.0.0.1:{door.flight_port}", {"username": "ann", "password": "no"}
        ) as connection,
    ):
        fetched(connection, "SELECT 1")


def test_refusals_say_where_and_what_to_do(client: flight.FlightClient) -> None:
    for sql, said in {
        "SELECT nothing FROM orders": r"\[unknown_column\].*line 1, column 8",
        "SELEC 1": r"\[syntax\].*no statement that begins with SELEC",
        "SELECT * FROM nobody": r"nobody",
        "BEGIN": "PostgreSQL's protocol",
        "COPY (SELECT 1) TO STDOUT": "PostgreSQL's protocol",
        "SELECT id FROM everything WHERE id = $1": "parameter",
    }.items():
        with pytest.raises((flight.FlightError, pa.ArrowException), match=said) as refused:
            asked(client, sql)
        assert "Traceback" not in str(refused.value)
        assert ".py" not in str(refused.value)


@pytest.mark.parametrize(
    "command",
    [
        b"",
        b"\xff\xff\xff",
        b"junk" * 1_000,
        packed("CommandPreparedStatementQuery", prepared_statement_handle=b"\xff\xff\xff\xff"),
        packed("CommandPreparedStatementQuery", prepared_statement_handle=b"\0\0\0\1Sjunk"),
        packed("CommandPreparedStatementQuery", prepared_statement_handle=b""),
        packed("CommandPreparedStatementQuery", prepared_statement_handle=b"nohandle"),
        NO_UTF8,
        packed("DoPutUpdateResult", record_count=1),
        packed("CommandStatementQuery", query="SELECT '" + "x" * 2_000_000 + "'"),
    ],
)
def test_what_cannot_be_understood_is_refused(client: flight.FlightClient, command: bytes) -> None:
    descriptor = flight.FlightDescriptor.for_command(command)
    with pytest.raises((flight.FlightError, pa.ArrowException)):
        client.get_flight_info(descriptor, options())
    with pytest.raises((flight.FlightError, pa.ArrowException)):
        client.do_get(flight.Ticket(command), options()).read_all()
    with pytest.raises((flight.FlightError, pa.ArrowException)):
        list(client.do_action(flight.Action("CreatePreparedStatement", command), options()))
    assert asked(client, "SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_whoever_leaves_or_talks_nonsense_keeps_no_call(door: Door, client: flight.FlightClient) -> None:
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", door.flight_port)) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    command = packed("CommandStatementQuery", query="SELECT * FROM all_types")
    ticket = (
        client.get_flight_info(flight.FlightDescriptor.for_command(command), options()).endpoints[0].ticket
    )
    for _ in range(100):
        client.do_get(ticket, options()).cancel()
    wait_until(lambda: calls(door) == 0, 30, "all calls have ended")
    began = time.monotonic()
    assert asked(client, "SELECT 1 AS one").to_pylist() == [{"one": 1}]
    assert time.monotonic() - began < 10
