"""What guards every route: the rights of tokens, limits on bodies; and no answer is stored."""

from __future__ import annotations

import gzip
import itertools
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from broker.http.rights import RIGHTS, require_rights, right_of
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, unique_name
from tests.kafka import wait_until

TOKEN = "a-token-of-more-than-16-characters"
READ_TOKEN = "another-token-that-only-reads"
DOCS = Path(__file__).parents[3] / "docs" / "http-api.md"
SECRET = 4_929_123_456_789


@pytest.fixture(scope="module")
def guarded(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    one = Broker(
        kafka,
        tmp_path_factory.mktemp("reading") / "data",
        f"t{uuid.uuid4().hex[:12]}",
        HTTP_TOKEN=TOKEN,
        HTTP_READ_TOKEN=READ_TOKEN,
        REQUEST_BYTES_MAX=1_200_000,
        REQUEST_BULK_BYTES_MAX=1_500_000,
    )
    one.launch()
    one.http.headers["Authorization"] = f"Bearer {TOKEN}"
    one.await_ready()
    yield one
    one.close()


@pytest.fixture(scope="module")
def cards(guarded: Broker) -> str:
    """A stream with a column that nobody with the read token may see."""
    name = unique_name()
    guarded.create(stream_sql(name, columns="id BIGINT, card BIGINT, ts TIMESTAMP, CONSTRAINT UNIQUE (id)"))
    guarded.send(name, [{"id": i, "card": SECRET + i, "ts": 1_700_000_000_000 + i} for i in range(100)])
    wait_until(lambda: guarded.source(name)["rows"] >= 99, what="its rows are there")
    return name


@pytest.fixture(scope="module")
def reader(guarded: Broker) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {READ_TOKEN}"}
    with httpx.Client(base_url=guarded.url, headers=headers, timeout=60.0) as client:
        yield client


def test_a_route_without_a_right_is_no_route() -> None:
    app = FastAPI()

    @app.post("/queries/{handle}/everything")
    async def _() -> None: ...

    with pytest.raises(LookupError, match=r"POST /queries/\{handle\}/everything"):
        require_rights(app)


def test_the_docs_have_the_table_of_rights() -> None:
    row = re.compile(r"^\| (open|look|handle|operator|write) \| [^|]*\| (.*) \|$", re.MULTILINE)
    rows = row.findall(DOCS.read_text())
    told = {one: right for right, cell in rows for one in re.findall(r"`([^`]+)`", cell)}
    assert told == RIGHTS


def test_the_read_token_takes_each_route_as_the_table_says(
    guarded: Broker, reader: httpx.Client, cards: str
) -> None:
    query = guarded.http.post("/queries", json={"sql": f"SELECT id FROM {cards}"}).json()
    described = reader.get("/openapi.json").json()["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    unknown = [one for one in routes if right_of(*re.sub(r"\{\w+\}", "x", one).split(" ")) is None]
    assert not unknown
    for route, right in RIGHTS.items():
        method, path = route.split(" ")
        path = path.replace("{name}", query["handle"]).replace("{path}", cards)
        params = {"live": "false"} if path.endswith("changes") else {"from": "1700000000000"}
        body: dict[str, Any] = {} if method == "GET" else {"json": {}}
        with reader.stream(method, path, params=params, **body) as reply:
            code = None if reply.is_success else reply.read() and reply.json()["code"]
        refused = (reply.status_code, code) == (403, "not_allowed")
        assert refused == (right in ("operator", "write")), (route, reply.status_code, code)
        if right == "handle":
            by_id = reader.request(method, path.replace(query["handle"], query["query_id"]), params=params)
            assert by_id.json()["code"] == "handle_needed", route


def test_no_plan_tells_a_value(guarded: Broker, reader: httpx.Client, cards: str) -> None:
    """Whatever is asked of a card number, there or not: the plan has the same numbers."""

    def figures(value: int) -> list[str]:
        sql = f"SELECT id FROM {cards} WHERE card >= {value}"
        explained = reader.post("/statements", json={"sql": f"EXPLAIN {sql}"})
        checked = reader.post("/statements/check", json={"sql": sql})
        assert (explained.status_code, checked.status_code) == (200, 200), explained.text
        assert checked.json()["plan"] is not None
        return [re.sub(rf"{value}|\d+(\.\d+)? (ns|us|ms)", "", one.text) for one in (explained, checked)]

    assert figures(SECRET + 50) == figures(SECRET + 500) == figures(1_000_000_000_000)
    analyzed = {"sql": f"EXPLAIN ANALYZE SELECT id FROM {cards} WHERE card >= 0"}
    reply = reader.post("/statements", json=analyzed)
    assert (reply.status_code, reply.json()["code"]) == (403, "not_allowed")
    measured = guarded.http.post("/statements", json=analyzed).json()
    assert measured["plan"]["steps"][0]["actual_rows"] >= 99


def test_a_plan_without_rows_has_all_that_the_text_needs(
    guarded: Broker, reader: httpx.Client, cards: str, name: str
) -> None:
    """Views, streams that a constraint refers to, summaries."""
    guarded.create(f"CREATE VIEW {cards}_v AS SELECT id, card FROM {cards} WHERE id > 3")
    rule = f"CONSTRAINT REFERENCES (id) TO {cards} (id) WITHIN 1 SECOND"
    guarded.create(stream_sql(f"{cards}_r", columns=f"id BIGINT, ts TIMESTAMP, {rule}"))
    summary = f"CREATE SUMMARY {name}_s ON {cards} (id) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)"
    assert guarded.http.post("/sources", json={"sql": summary}).status_code == 201
    for sql in (
        f"SELECT id FROM {cards}_v WHERE card > 5",
        f"SELECT a.id FROM {cards}_r [RANGE 1 HOUR] AS a JOIN {cards} [RANGE 1 HOUR] AS b ON a.id = b.id",
        f"SELECT id FROM {cards}_r",
        f"SELECT id, card FROM {cards} WITH PREFERENCE DESC SUMMARY.Estimate.Count(id)",
    ):
        reply = reader.post("/statements", json={"sql": f"EXPLAIN {sql}"})
        assert reply.status_code == 200, reply.text


def test_a_query_is_explained_by_its_handle(guarded: Broker, reader: httpx.Client, cards: str) -> None:
    query = guarded.http.post("/queries", json={"sql": f"SELECT card FROM {cards}"}).json()
    reply = reader.post("/statements", json={"sql": f"EXPLAIN ANALYZE '{query['handle']}'"})
    assert reply.status_code == 200
    reply = reader.post("/statements", json={"sql": f"EXPLAIN '{query['query_id']}'"})
    assert (reply.status_code, reply.json()["code"]) == (404, "handle_needed")
    full = guarded.http.post("/statements", json={"sql": f"EXPLAIN '{query['query_id']}'"})
    assert full.status_code == 200


MIB = 1024 * 1024
BODY_BYTES = 2 * MIB
"""Above what this broker takes, of lines too, and more than sockets hold for a server that does not read."""


def ask(one: Broker, head: str, parts: Iterator[bytes]) -> tuple[bytes, bytes]:
    """The first answer to a request that is sent whole before anything of it is read, as simple clients do;
    its head and its body.
    """
    with socket.create_connection(("127.0.0.1", one.port), timeout=60) as connection:
        token = f"Authorization: Bearer {TOKEN}\r\n"
        connection.sendall(f"{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}".encode())
        for part in parts:
            connection.sendall(part)
        answer = b""
        while data := connection.recv(65_536):
            answer += data
    told, _, body = answer.partition(b"\r\n\r\n")
    return told, body


def declared(filler: bytes, declared_bytes: int = BODY_BYTES) -> Iterator[bytes]:
    yield f"Content-Length: {declared_bytes}\r\n\r\n".encode()
    for _ in range(BODY_BYTES // MIB):
        yield filler * (MIB // len(filler))


def chunked(filler: bytes) -> Iterator[bytes]:
    yield b"Transfer-Encoding: chunked\r\n\r\n"
    for _ in range(BODY_BYTES // MIB):
        yield b"%x\r\n" % MIB + filler * (MIB // len(filler)) + b"\r\n"
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("way", [declared, chunked])
def test_a_body_above_its_limit_is_413_on_every_route(
    guarded: Broker, cards: str, way: Callable[[bytes], Iterator[bytes]]
) -> None:
    json = "Content-Type: application/json\r\n"
    for route in (*RIGHTS, "POST /nowhere"):
        method, path = route.replace("{name}", "no-such-handle").replace("{path}", cards).split(" ")
        head, body = ask(guarded, f"{method} {path}", itertools.chain([json.encode()], way(b"x")))
        assert head.startswith(b"HTTP/1.1 413 "), (route, head)
        assert b"limit_exceeded" in body, route
    assert guarded.readiness()[0] == 200
    assert guarded.http.get("/status").status_code == 200


def test_lines_above_their_limit_are_413(guarded: Broker, cards: str) -> None:
    """Where lines were registered before the limit, the last answer tells it."""
    lines = b"Content-Type: application/x-ndjson\r\n"
    for path in ("/queries", f"/match?source={cards}"):
        head, _ = ask(guarded, f"POST {path}", itertools.chain([lines], declared(b"{}\n\n")))
        assert head.startswith(b"HTTP/1.1 413 "), (path, head)
    head, _ = ask(guarded, f"POST /match?source={cards}", itertools.chain([lines], chunked(b"{}\n\n")))
    assert head.startswith(b"HTTP/1.1 413 "), head
    head, body = ask(guarded, "POST /queries", itertools.chain([lines], chunked(b"\n" * 16)))
    assert head.startswith(b"HTTP/1.1 413 "), head
    sql = f'{{"sql": "SELECT id FROM {cards}"}}'.encode().ljust(32 * 1_024 - 1) + b"\n"
    head, body = ask(guarded, "POST /queries", itertools.chain([lines], chunked(sql)))
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"limit_exceeded" in body[-400:], body[-500:]


def test_compressed_bodies_are_refused_and_bombs_are_not_opened(guarded: Broker) -> None:
    packed = gzip.compress(b'{"sql": "' + b" " * (64 * MIB) + b'"}')
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    reply = guarded.http.post("/queries", content=packed, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_media_type")
    assert "Content-Encoding" in reply.json()["hint"]
    head, _ = ask(
        guarded,
        "POST /queries",
        itertools.chain([b"Content-Encoding: gzip\r\nContent-Type: application/json\r\n"], chunked(b"\x1f")),
    )
    assert head.startswith(b"HTTP/1.1 4"), head


def test_a_length_that_is_not_the_bodys(guarded: Broker) -> None:
    json = b"Content-Type: application/json\r\n"
    head, _ = ask(guarded, "POST /queries", itertools.chain([json], declared(b"x", 2**40)))
    assert head.startswith(b"HTTP/1.1 413 "), head
    for length in ("-1", str(10**30), "1e9", "0x10", "+5", "5, 6"):
        wrong = iter([json, f"Content-Length: {length}\r\n\r\n".encode(), b"xxxxx"])
        head, _ = ask(guarded, "POST /queries", wrong)
        assert head.startswith(b"HTTP/1.1 400 "), (length, head)
    both = iter([json, b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"])
    assert ask(guarded, "POST /queries", both)[0].startswith(b"HTTP/1.1 400 ")
    assert guarded.readiness()[0] == 200


def test_who_waits_to_be_asked_is_refused_before_a_body_is_sent(guarded: Broker) -> None:
    json = b"Content-Type: application/json\r\nExpect: 100-continue\r\n"
    head, _ = ask(guarded, "POST /queries", iter([json, f"Content-Length: {BODY_BYTES}\r\n\r\n".encode()]))
    assert head.startswith(b"HTTP/1.1 413 "), head


def test_no_answer_may_be_stored_on_its_way(guarded: Broker, cards: str) -> None:
    """Handles, answers, records, texts: all but the page's files and those of /docs."""
    query = guarded.http.post("/queries", json={"sql": f"SELECT id FROM {cards}"}).json()
    for route in RIGHTS:
        method, path = route.split(" ")
        if path.startswith(("/docs/", "/page/")):
            continue
        path = path.replace("{name}", query["handle"]).replace("{path}", cards)
        body: dict[str, Any] = {} if method == "GET" else {"json": {}}
        params = {"live": "false", "from": "1700000000000", "topic": cards}
        with guarded.http.stream(method, path, params=params, **body) as reply:
            assert reply.headers.get_list("Cache-Control") == ["no-store"], (route, reply.status_code)
    registered = guarded.http.post("/queries", json={"sql": f"SELECT id FROM {cards}"})
    assert (registered.status_code, registered.headers["Cache-Control"]) == (201, "no-store")
    inferred = guarded.http.post("/sources/infer", json={"topic": cards})
    assert (inferred.status_code, inferred.headers["Cache-Control"]) == (200, "no-store")
    plain = httpx.get(f"{guarded.url}/queries")
    assert (plain.status_code, plain.headers["Cache-Control"]) == (401, "no-store")
