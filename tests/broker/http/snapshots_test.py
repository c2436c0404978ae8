"""Answers by HTTP and by topic: formats, instants, limits, chunks."""

from __future__ import annotations

import json
import socket
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
COLUMNS = "id BIGINT, v DOUBLE, d DECIMAL(6, 2), s STRING, on_ DATE, ok BOOLEAN, ts TIMESTAMP"


@pytest.fixture
def stream(shared: Broker, name: str) -> str:
    """Three visible rows of every type, with NULLs."""
    shared.create(stream_sql(name, columns=COLUMNS))
    full = {"id": 2**53 + 1, "v": 0.5, "d": "12.30", "s": 'a "b",\nc', "on_": "2023-11-14", "ok": True}
    shared.send(
        name,
        [
            full | {"ts": BASE_MS},
            {"id": 2, "s": "", "ts": BASE_MS + 1_500},
            {"id": 3, "v": -1e300, "ts": BASE_MS + 2_000},
            {"id": 4, "ts": BASE_MS + 60_000},
        ],
    )
    return name


def test_formats(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id, v, d, s, on_, ok, ts FROM {stream}")
    shared.await_rows(handle, 3)
    answer = shared.snapshot(handle)
    assert answer["rows"] == [
        [2**53 + 1, 0.5, "12.30", 'a "b",\nc', "2023-11-14", True, "2023-11-14T22:13:20.000Z"],
        [2, None, None, "", None, None, "2023-11-14T22:13:21.500Z"],
        [3, -1e300, None, None, None, None, "2023-11-14T22:13:22.000Z"],
    ]
    assert answer["columns"][2] == {"name": "d", "type": "DECIMAL(6, 2)"}
    assert answer["now_ms"] == BASE_MS + 59_999
    assert (answer["complete"], answer["approximate"], answer["errors"]) == (True, False, 0)

    path = f"/queries/{handle}/snapshot"
    lines = shared.http.get(path, params={"format": "ndjson"}).text.splitlines()
    assert [list(json.loads(line).values()) for line in lines] == answer["rows"]
    table = shared.http.get(path, params={"format": "csv"}).text
    assert table.split("\n")[3] == '2,,,"",,,2023-11-14T22:13:21.500Z'
    reply = shared.http.get(path, params={"format": "arrow"})
    arrow = pa.ipc.open_stream(reply.content).read_all()
    assert arrow.column("id").to_pylist() == [2**53 + 1, 2, 3]
    assert str(arrow.schema.field("d").type) == "decimal128(6, 2)"
    assert place(reply.headers["Tureen-Position"]) >= place(answer["position"])  # other streams go on
    assert reply.headers["Tureen-Now-Ms"] == str(answer["now_ms"])
    refused = shared.http.get(path, params={"format": "xml"})
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")


def place(position: str) -> tuple[int, int]:
    epoch, sequence = position.split("-")
    return int(epoch), int(sequence)


def test_values_that_json_has_not(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT v * 1e300 * v AS big, 1 / (id - 2) AS ratio FROM {stream}")
    shared.await_rows(handle, 3)
    answer = shared.snapshot(handle)
    assert answer["rows"][2][0] == "Infinity"
    assert answer["rows"][1][1] is None
    assert answer["errors"] == 1


def test_the_first_rows_of_an_answer(shared: Broker, stream: str) -> None:
    for sql in (
        f"SELECT id, s FROM {stream}",
        f"SELECT id, s, COUNT(*) AS n FROM {stream} GROUP BY id, s ORDER BY id",
        f"SELECT a.id, b.s FROM {stream} a JOIN {stream} b ON a.ok = b.ok OR a.id = b.id",
    ):
        handle = shared.register(sql)
        whole = shared.await_rows(handle, 3)
        for at in ({}, {"at": BASE_MS + 59_999}):
            for limit in (0, 1, 2, 3, 1_000):
                first = shared.snapshot(handle, limit=limit, **at)
                assert (first["rows"], first["rows_total"]) == (whole[:limit], len(whole)), (sql, limit)
        path = f"/queries/{handle}/snapshot"
        few = shared.http.get(path, params={"format": "arrow", "limit": 2})
        assert pa.ipc.open_stream(few.content).read_all().num_rows == 2
        assert few.headers["Tureen-Rows-Total"] == str(len(whole))
        assert shared.http.get(path, params={"limit": -1}).status_code == 400


def test_an_earlier_instant(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream} [RANGE 1 SECONDS]")
    shared.await_rows(handle, 0)
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == BASE_MS + 59_999)
    for at, expected in (
        (BASE_MS + 1_500, [[2]]),
        ("2023-11-14T22:13:22Z", [[2], [3]]),
        ("2023-11-14T22:13:20", [[2**53 + 1]]),
    ):
        answer = shared.snapshot(handle, at=at)
        assert answer["rows"] == expected
        assert answer["change_position"] is None
    for at, code in ((BASE_MS + 60_000, "instant_out_of_range"), ("tomorrow", "bad_request")):
        reply = shared.http.get(f"/queries/{handle}/snapshot", params={"at": at})
        assert (reply.status_code, reply.json()["code"]) == (400, code)
    late = shared.http.get(f"/queries/{handle}/snapshot", params={"at": BASE_MS + 60_000}).json()
    known = {"at_ms": BASE_MS + 60_000, "earliest_ms": None, "latest_ms": BASE_MS + 59_999}
    assert late["facts"] == known


def ask(shared: Broker, opens: str, **request: Any) -> str:
    """Send a snapshot request; its correlation id."""
    correlation = uuid.uuid4().hex
    facts = {
        "handle": opens,
        "format": "json",
        "reply_to": f"{shared.names.reply_prefix}tests",
        "correlation_id": correlation,
    } | request
    shared.producer.send(shared.names.snapshot_requests, json.dumps(facts).encode(), query_id(opens).encode())
    shared.producer.flush()
    return correlation


def reply(shared: Broker, correlation: str) -> tuple[dict[str, str], bytes]:
    """(headers of the first chunk, the whole body)."""
    topic = f"{shared.names.reply_prefix}tests"
    chunks: list[Any] = []

    def whole() -> bool:
        if topic not in shared.admin.topics():
            return False
        found = [r for r in shared.records(topic) if r.key() == correlation.encode()]
        chunks[:] = [({name: value.decode() for name, value in r.headers()}, r.value()) for r in found]
        return bool(chunks) and len(chunks) == int(chunks[0][0]["tureen-chunks"])

    wait_until(whole, what="all chunks")
    assert [headers["tureen-chunk"] for headers, _ in chunks] == [str(i) for i in range(len(chunks))]
    return chunks[0][0], b"".join(value or b"" for _, value in chunks)


def test_an_answer_by_topic_comes_in_chunks(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id, v, ts FROM {name}")
    shared.send(name, [{"id": i, "v": i, "ts": BASE_MS + i} for i in range(30_000)])
    shared.await_rows(handle, 29_999)
    headers, body = reply(shared, ask(shared, handle))
    answer, told = shared.snapshot(handle), json.loads(body)
    moves = {"position": None, "change_position": None}  # other streams of the shard go on
    assert told | moves == answer | moves
    assert headers["tureen-change-position"] == told["change_position"]
    assert int(headers["tureen-chunks"]) == -(-len(body) // (512 * 1024)) > 1
    assert headers["tureen-status"] == "ok"
    assert (headers["tureen-position"], headers["tureen-now-ms"]) == (told["position"], str(told["now_ms"]))
    headers, body = reply(shared, ask(shared, handle, format="arrow", at=BASE_MS + 9))
    assert headers["tureen-format"] == "arrow"
    assert pa.ipc.open_stream(body).read_all().num_rows == 10


def test_requests_by_topic_that_are_refused(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream}")
    for correlation, code in (
        (ask(shared, new_handle()), "unknown_query"),
        (ask(shared, handle, handle=new_handle()), "unknown_query"),
        (ask(shared, handle, format="xml"), "malformed_record"),
        (ask(shared, handle, at=BASE_MS * 2), "instant_out_of_range"),
        (ask(shared, handle, at=[]), "malformed_record"),
    ):
        headers, body = reply(shared, correlation)
        assert headers["tureen-status"] == "error"
        assert json.loads(body)["code"] == code


def test_a_request_cannot_write_elsewhere(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream}")
    for elsewhere in (stream, shared.names.queries, shared.names.reply_prefix, 7):
        ask(shared, handle, reply_to=elsewhere)

    def refused() -> list[Any]:
        found = shared.records(shared.names.dead_letters)
        return [r for r in found if r.key() == query_id(handle).encode()]

    wait_until(lambda: len(refused()) == 4)
    assert [record.value() for record in refused()] == [None] * 4  # a request holds the handle
    assert handle not in shared.log.read_text()


def test_limits_of_an_answer(kafka: str, tmp_path: Path, service_id: str, name: str) -> None:
    with broker(
        kafka, tmp_path / "data", service_id, SNAPSHOT_ROWS_MAX=50, SNAPSHOT_BYTES_MAX=2048, QUERIES_MAX=3
    ) as one:
        one.create(stream_sql(name))
        one.send(name, [{"id": i, "v": i, "ts": BASE_MS + i} for i in range(100)])
        few = one.register(f"SELECT id FROM {name} WHERE id < 10")
        wide = one.register(f"SELECT id, v, ts, ts AS again FROM {name} WHERE id < 50")
        many = one.register(f"SELECT id FROM {name}")
        one.await_rows(few, 10)
        wait_until(lambda: one.source(name)["rows"] == 99)
        for handle, limit in ((wide, "snapshot_bytes_max"), (many, "snapshot_rows_max")):
            refused = one.http.get(f"/queries/{handle}/snapshot")
            assert (refused.status_code, refused.json()["code"]) == (413, "limit_exceeded")
            assert limit in refused.json()["message"]
        for mode in ("none", "lazy", "eager"):
            assert one.http.patch(f"/queries/{many}", json={"maintenance": mode}).status_code == 200
            first = one.snapshot(many, limit=10)
            assert (first["rows"], first["rows_total"]) == ([[i] for i in range(10)], 99), mode
        assert one.snapshot(wide, limit=5)["rows_total"] == 50
        assert one.http.get(f"/queries/{many}/snapshot", params={"limit": 51}).status_code == 413
        refused = one.http.post("/queries", json={"sql": f"SELECT id FROM {name}"})
        assert (refused.status_code, refused.json()["code"]) == (413, "limit_exceeded")
        assert one.http.delete(f"/queries/{many}").status_code == 200
        one.register(f"SELECT v FROM {name}")


def test_a_plain_request_and_any_other_are_answered_alike(shared: Broker, stream: str) -> None:
    """Plain ones take a short way, ahead of the application; so do their errors."""
    handle = shared.register(f"SELECT id, v FROM {stream}")
    shared.await_rows(handle, 3)
    path = f"/queries/{handle}/snapshot"
    for query, same in (
        ("", "?"),
        ("?format=csv", "?format=cs%76"),
        ("?format=json&at=1700000001000", "?at=1700000001000&format=json"),
        ("?at=1700000099000", "?at=1700000099000&format=json"),
        ("?format=arrow&at=5", "?at=5&format=arrow"),
    ):
        plain, other = (shared.http.get(path + one) for one in (query, same))
        assert plain.status_code == other.status_code
        for reply in (plain, other):
            for name in ("Tureen-Position", "Tureen-Change-Position", "Date"):
                reply.headers.pop(name, None)
        if "json" in plain.headers["Content-Type"]:
            told = [{k: v for k, v in one.json().items() if "position" not in k} for one in (plain, other)]
            assert told[0] == told[1]
        else:
            assert plain.content == other.content
        assert plain.headers.keys() == other.headers.keys()
    unknown = shared.http.get(f"/queries/{new_handle()}/snapshot")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_query")
    assert shared.http.head(path).status_code == 405


def answers(caller: socket.socket, count: int) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of so many answers."""
    found = []
    with caller.makefile("rb") as stream:
        for _ in range(count):
            status = int(stream.readline().split()[1])
            head = iter(lambda: stream.readline().decode().strip(), "")
            headers = dict(line.lower().split(": ", 1) for line in head)
            found.append((status, headers, stream.read(int(headers["content-length"]))))
    return found


@pytest.mark.parametrize("form", ["json", "ndjson", "csv", "arrow"])
def test_an_answer_that_is_asked_for_again_is_the_same(shared: Broker, stream: str, form: str) -> None:
    """Once it is known to take little it is written by the connection itself."""
    handle = shared.register(f"SELECT id, s, ts FROM {stream}")
    shared.await_rows(handle, 3)
    host = f"GET /queries/{handle}/snapshot?format={form} HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as caller:
        told = []
        for more in ("", "", "", "Expect: 100-continue\r\n", "Content-Length: 0\r\n"):
            caller.sendall(f"{host}{more}\r\n".encode())
            told += answers(caller, 1)
        caller.sendall(f"{host}\r\n".encode() * 50)
        told += answers(caller, 50)
        wrong = (("Origin: http://evil.example\r\n", 403), ("Host: evil.example\r\n", 400))
        for more, status in wrong:
            caller.sendall(f"{host}{more}\r\n".encode())
            assert answers(caller, 1)[0][0] == status
        caller.sendall(host.replace("localhost", "evil.example").encode() + b"\r\n")
        assert answers(caller, 1)[0][0] == 421
        caller.sendall(f"{host}Connection: close\r\n\r\n".encode())
        told += answers(caller, 1)
        assert caller.recv(1) == b""
    for _, headers, _ in told:
        for changing in ("date", "tureen-position", "tureen-change-position", "connection"):
            headers.pop(changing, None)
    bodies = [
        {k: v for k, v in json.loads(body).items() if "position" not in k} if form == "json" else body
        for _, _, body in told
    ]
    if form == "json":
        for _, headers, _ in told:
            headers.pop("content-length")
    assert all(one[0] == 200 and one[1] == told[0][1] for one in told)
    assert all(body == bodies[0] for body in bodies)


def test_an_answer_that_grows_is_still_whole(shared: Broker, name: str) -> None:
    """Small answers are computed by the event loop, large ones are not."""
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    shared.send(name, [{"id": number, "v": 0.0, "ts": BASE_MS + number} for number in range(3)])
    shared.await_rows(handle, 2)
    for _ in range(3):
        assert len(shared.snapshot(handle)["rows"]) == 2
    shared.send(name, [{"id": number, "v": 0.0, "ts": BASE_MS + number} for number in range(3, 5_000)])
    shared.await_rows(handle, 4_999)
