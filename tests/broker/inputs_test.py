"""Bad input at every door: a clear error in the right place, and the others unharmed."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import JSON, Broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id


def letters(shared: Broker, topic: str, key: bytes | None) -> list[tuple[bytes, str]]:
    """(value, reason) of the dead letters of this topic and key."""
    found = []
    for record in shared.records(shared.names.dead_letters):
        headers = dict(record.headers())
        if headers["tureen-topic"] == topic.encode() and record.key() == key:
            found.append((record.value(), headers["tureen-reason"].decode()))
    return found


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (b"{no json", "malformed_record", None),
        (b"[]", "malformed_record", None),
        (b"{}", "malformed_record", None),
        (b'{"sql": 7}', "malformed_record", None),
        (b'{"sql": "SELECT 1", "options": []}', "malformed_record", "SELECT 1"),
        (b'{"sql": "SELECT 1", "extra": 1}', "malformed_record", "SELECT 1"),
        (b'{"template": "SELECT ?", "parameters": 7}', "malformed_record", "SELECT ?"),
        (b"\xff\xfe", "malformed_record", None),
        (json.dumps({"sql": "SELECT " + "x" * 70_000}).encode(), "limit_exceeded", None),
    ],
)
def test_a_record_that_is_no_registration(shared: Broker, value: bytes, code: str, text: str | None) -> None:
    handle = new_handle()
    shared.publish(handle, value)
    name = query_id(handle)
    wait_until(lambda: shared.status_topic().get(name))
    (status,) = shared.status_topic()[name]
    assert status is not None
    assert (status["state"], status["error"]["code"]) == ("ERROR", code)
    ((letter, reason),) = letters(shared, shared.names.queries, name.encode())
    assert letter == value
    assert reason.startswith(code)
    shown = shared.http.get(f"/queries/{handle}").json()
    assert (shown["state"], shown["error"]["code"], shown["sql"]) == ("ERROR", code, text)


def test_a_record_without_an_id_is_a_dead_letter(shared: Broker) -> None:
    for key in (b"short", b"\xff" * 26, b"A" * 26):
        shared.producer.send(shared.names.queries, b'{"sql": "SELECT 1"}', key)
    shared.producer.flush()
    for key in (b"short", b"\xff" * 26, b"A" * 26):
        wait_until(lambda key=key: letters(shared, shared.names.queries, key))


def test_a_text_that_is_refused_is_told_on_the_status_topic(shared: Broker, name: str) -> None:
    """As the first text of a query; as another one it leaves the query running (altering_test)."""
    shared.create(stream_sql(name))
    handle = new_handle()
    shared.publish(handle, {"sql": f"SELECT nothing\nFROM {name}"})
    wait_until(lambda: shared.state(handle) == "ERROR")
    wait_until(lambda: len(shared.status_topic().get(query_id(handle), ())) == 1)
    status = shared.status_topic()[query_id(handle)][-1]
    assert status is not None
    assert (status["error"]["code"], status["error"]["line"], status["error"]["column"]) == (
        "unknown_column",
        1,
        8,
    )
    refused = shared.http.get(f"/queries/{handle}/snapshot")
    assert (refused.status_code, refused.json()["code"]) == (409, "query_not_running")
    shared.publish(handle, {"sql": f"SELECT id FROM {name}"})
    wait_until(lambda: shared.state(handle) == "RUNNING")


def test_a_source_record_that_is_refused(shared: Broker, name: str) -> None:
    shared.producer.send(shared.names.sources, b'{"sql": "CREATE STREAM other (id BIGINT)"}', name.encode())
    shared.producer.send(shared.names.sources, b"{", name.encode())
    shared.producer.flush()
    wait_until(lambda: len(letters(shared, shared.names.sources, name.encode())) == 2)
    reasons = [reason.split(":")[0] for _, reason in letters(shared, shared.names.sources, name.encode())]
    assert reasons == ["source_conflict", "malformed_record"]


@pytest.mark.parametrize(
    ("sql", "status", "code"),
    [
        ("", 400, "bad_request"),
        ("SELEC id FROM x", 400, "syntax"),
        ("CREATE STREAM q (id BIGINT)", 400, "not_supported"),
        ("SELECT id FROM {name} WHERE id = 'x'", 400, "type_mismatch"),
        ("SELECT id FROM {name} WHERE nothing = 1", 400, "unknown_column"),
        ("SELECT id FROM {name}; DROP STREAM {name}", 400, "not_supported"),
        ("SELECT " + "(" * 100 + "1" + ")" * 100 + " FROM {name}", 413, "limit_exceeded"),
        ("SELECT " + "1," * 40_000 + "1 FROM {name}", 413, "limit_exceeded"),
    ],
)
def test_http_refuses_a_text(shared: Broker, name: str, sql: str, status: int, code: str) -> None:
    shared.create(stream_sql(name))
    reply = shared.http.post("/queries", json={"sql": sql.format(name=name)})
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text
    assert set(reply.json()) >= {"code", "message", "line", "column", "hint"}
    assert shared.source(name)["queries"] == 0


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/queries", b"{", 400, "bad_request"),
        ("/queries", b"[1]", 400, "bad_request"),
        ("/queries", b'{"sql": "SELECT 1", "handle": "short"}', 400, "bad_request"),
        ("/queries", b'{"sql": "SELECT 1", "surprise": 1}', 400, "bad_request"),
        ("/queries", b'{"sql": "' + b"x" * (1 << 20) + b'"}', 413, "limit_exceeded"),
        ("/sources", b'{"sql": "SELECT 1 FROM x"}', 400, "unknown_source"),
        ("/sources", b'{"sql": "DROP STREAM not_there"}', 400, "unknown_source"),
    ],
)
def test_http_refuses_a_body(shared: Broker, path: str, body: bytes, status: int, code: str) -> None:
    reply = shared.http.post(path, content=body, headers=JSON)
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text


def test_a_chunked_body_is_limited_too(shared: Broker) -> None:
    def pieces() -> Any:
        for _ in range(20):
            yield b"x" * 100_000

    reply = shared.http.post("/queries", content=pieces(), headers=JSON)
    assert (reply.status_code, reply.json()["code"]) == (413, "limit_exceeded")


def test_what_is_not_there(shared: Broker) -> None:
    for path in (f"/queries/{new_handle()}", f"/queries/{new_handle()}/snapshot"):
        reply = shared.http.get(path)
        assert (reply.status_code, reply.json()["code"]) == (404, "unknown_query")
    assert shared.http.delete(f"/queries/{new_handle()}").status_code == 404
    assert shared.http.get("/nowhere").json()["code"] == "not_found"
    assert shared.http.put("/queries").json()["code"] == "method_not_allowed"
    assert shared.http.get("/queries", params={"limit": "x"}).json()["code"] == "bad_request"
    assert shared.readiness()[0] == 200


def test_endless_headers_are_refused(shared: Broker) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as one:
        one.sendall(b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
        with contextlib.suppress(ConnectionError):  # it may be closed while we write
            for _ in range(10):
                one.sendall(b"x" * 20_000)
        with contextlib.suppress(ConnectionError):
            assert one.recv(1_000).startswith(b"HTTP/1.1 400")
    assert shared.http.get("/healthcheck").status_code == 200


def test_a_long_body_is_no_long_head(shared: Broker) -> None:
    def pieces() -> Iterator[bytes]:
        yield from [b'{"sql": "' + b"x" * 30_000] * 10

    refused = shared.http.post("/queries", content=pieces(), headers=JSON)
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
