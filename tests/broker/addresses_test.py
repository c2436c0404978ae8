"""No client can have the broker open a connection or a file that it names: every way to name one, tried.

Whatever is tried names a listener of the test, or a file of its own. None of it may be reached.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import query_id


class Trap:
    """An address that nobody has a reason to connect to."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self._socket.setblocking(False)
        self.authority = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.url = f"http://{self.authority}/latest/meta-data"

    def is_untouched(self) -> bool:
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def trap() -> Iterator[Trap]:
    one = Trap()
    yield one
    assert one.is_untouched()
    one.close()


def statements(address: str, name: str) -> Iterator[str]:
    """Every place of a statement where an address could stand."""
    columns = "(id BIGINT, ts TIMESTAMP)"
    for option in (
        "topic", "bootstrap_servers", "bootstrap.servers", "kafka.bootstrap.servers", "schema_registry_url",
        "schema.registry.url", "archive", "path", "location", "url", "format", "value_format", "encoding",
        "connector", "properties", "ssl.ca.location", "reply_to",
    ):  # fmt: skip
        yield f"CREATE STREAM {name} {columns} WITH (\"{option}\" = '{address}')"
    yield f'CREATE STREAM "{address}" {columns}'
    yield f'CREATE STREAM "../../{name}" {columns}'
    yield f"CREATE STREAM {name} {columns} LOCATION '{address}'"
    yield f"CREATE STREAM {name} USING '{address}'"
    yield f"CREATE FUNCTION f AS '{address}' USING JAR '{address}'"
    for relation in (
        f"'{address}'", f"\"{address}\"", f"read_csv('{address}')", f"read_parquet('{address}')",
        f"delta_scan('{address}')", f"postgres_scan('{address}', 'a', 'b')", f"LOAD_FILE('{address}')",
    ):  # fmt: skip
        yield f"SELECT * FROM {relation}"
    for function in ("read_text", "http_get", "load_file", "pg_read_file", "dblink", "getenv"):
        yield f"SELECT {function}('{address}') FROM {name}"
    yield f'SELECT id FROM {name} EMIT CHANGES INTO "{address}"'
    yield f"SELECT id FROM {name} INTO OUTFILE '{address}'"
    yield from (
        f"COPY {name} FROM '{address}'", f"COPY {name} TO '{address}'", f"ATTACH '{address}' AS x",
        f"LOAD '{address}'", f"INSTALL httpfs FROM '{address}'", f"IMPORT DATABASE '{address}'",
        f"SET schema_registry_url = '{address}'", f"PRAGMA temp_directory = '{address}'",
        f"DESCRIBE '{address}'", f"EXPLAIN '{address}'", f"EXPLAIN SELECT * FROM '{address}'",
    )  # fmt: skip


def test_no_statement_reaches_an_address(shared: Broker, trap: Trap, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("id,ts\n4711,1\n")
    tried = 0
    for address in (trap.url, trap.authority, str(secret), f"file://{secret}"):
        for sql in statements(address, name):
            for path in ("/sources", "/queries", "/statements"):
                reply = shared.http.post(path, json={"sql": sql})
                tried += 1
                assert "4711" not in reply.text, sql
                # A query over a name that nobody has made waits for it, as for any other.
                waits = reply.status_code == 202 and reply.json()["state"] == "PENDING"
                assert waits or 400 <= reply.status_code < 500, (sql, reply.text)
                if waits:
                    shared.http.delete(f"/queries/{reply.json()['handle']}")
                assert trap.is_untouched(), sql
    assert tried > 400


def test_no_option_and_no_parameter_reaches_an_address(shared: Broker, trap: Trap, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    for key in ("archive", "at", "format", "reply_to", "callback", "url", "since", "live"):
        for path in (f"/queries/{handle}/snapshot", f"/queries/{handle}/changes", "/queries", "/sources"):
            reply = shared.http.get(path, params={key: trap.url, "live": "false"} | {key: trap.url})
            assert reply.status_code in (200, 400), (path, key)
    # Options of other names are the client's own: kept, and used for nothing.
    options = {"callback": trap.url, "reply_to": trap.url, "archive": trap.url, "bootstrap.servers": trap.url}
    reply = shared.http.post("/queries", json={"sql": f"SELECT v FROM {name}", "options": options})
    assert reply.status_code == 201
    for header in ("X-Forwarded-Host", "X-Forwarded-For", "Referer", "X-Original-URL", "X-Rewrite-URL"):
        assert shared.http.get("/sources", headers={header: trap.url}).status_code == 200
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as raw:
        raw.sendall(
            f"GET {trap.url} HTTP/1.1\r\nHost: {trap.authority}\r\nConnection: close\r\n\r\n".encode()
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 404")  # no proxy: the path is ours
        raw.shutdown(socket.SHUT_RDWR)


def test_no_record_reaches_an_address(shared: Broker, trap: Trap, name: str) -> None:
    """Values that other systems take for references, on a data topic and on the control topics."""
    shared.create(stream_sql(name, columns="id BIGINT, s STRING, ts TIMESTAMP"))
    handle = shared.register(f"SELECT id, s FROM {name} WHERE s LIKE '%{trap.authority}%'")
    values = [trap.url, f"${{jndi:ldap://{trap.authority}/a}}", f"<!ENTITY x SYSTEM '{trap.url}'>"]
    rows = [{"id": i, "s": s, "ts": 1_700_000_000_000 + i} for i, s in enumerate([*values, trap.authority])]
    shared.send(name, [{**row, "$schema": trap.url, "$ref": trap.url} for row in rows])
    shared.send(name, [b"\x00\x00\x00\x00\x07" + trap.url.encode()])
    assert [row[1] for row in shared.await_rows(handle, 3)] == values
    refused = len(shared.records(shared.names.dead_letters))
    for reply_to in (trap.url, shared.names.queries, f"{shared.names.reply_prefix}../{name}", "../x"):
        request = {"handle": handle, "format": "json", "reply_to": reply_to, "correlation_id": "1"}
        shared.producer.send(
            shared.names.snapshot_requests, json.dumps(request).encode(), query_id(handle).encode()
        )
    shared.producer.flush()
    wait_until(lambda: len(shared.records(shared.names.dead_letters)) >= refused + 4, what="all are refused")


def test_topics_with_secrets_cannot_be_read_as_streams(shared: Broker, name: str) -> None:
    """Requests for snapshots hold handles."""
    names = shared.names
    written = len(shared.records(names.sources))
    for topic in (
        *(names.snapshot_requests, names.queries, names.steps, names.late, names.status, names.results),
        *(f"{names.reply_prefix}x", f"{names.control_group}-registry-changelog", "__consumer_offsets"),
    ):
        columns = "handle STRING NOT NULL, PRIMARY KEY (handle)"
        for kind, inner in (("STREAM", "handle STRING"), ("TABLE", columns)):
            sql = f"CREATE {kind} {name} ({inner}) WITH (topic = '{topic}')"
            for path in ("/sources", "/statements"):
                refuses(shared.http.post(path, json={"sql": sql}))
        refuses(shared.http.post("/sources/infer", json={"topic": topic}))
    assert len(shared.records(names.sources)) == written
    assert names.snapshot_requests not in shared.http.get("/topics").text


def test_a_topic_that_only_begins_like_those_of_the_broker_is_the_users_own(
    shared: Broker, name: str
) -> None:
    topic = f"{shared.names.service_id}-{name}"
    shared.create(
        f"CREATE STREAM {name} (id BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts', topic = '{topic}')"
    )
    shared.send(topic, [{"id": 1, "ts": 1_700_000_000_000}])
    reply = shared.http.post("/sources/infer", json={"topic": topic})
    assert (reply.status_code, reply.json()["read_by"]) == (200, [name])
    assert topic in shared.http.get("/topics").text


def refuses(reply: httpx.Response) -> None:
    assert reply.status_code == 400, reply.text
    assert "belongs to the broker or to Kafka" in reply.json()["message"]
