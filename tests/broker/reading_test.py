"""What the token that only reads may do: every route, and that no count tells a value."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
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
DOCS = Path(__file__).parents[2] / "docs" / "http-api.md"
SECRET = 4_929_123_456_789


@pytest.fixture(scope="module")
def guarded(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    one = Broker(
        kafka,
        tmp_path_factory.mktemp("reading") / "data",
        f"t{uuid.uuid4().hex[:12]}",
        HTTP_TOKEN=TOKEN,
        HTTP_READ_TOKEN=READ_TOKEN,
        REQUEST_BYTES_MAX=2_000_000,
        REQUEST_BULK_BYTES_MAX=4_000_000,
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
    guarded: Broker, reader: httpx.Client, cards: str
) -> None:
    """Views, streams that a constraint refers to, summaries."""
    guarded.create(f"CREATE VIEW {cards}_v AS SELECT id, card FROM {cards} WHERE id > 3")
    rule = f"CONSTRAINT REFERENCES (id) TO {cards} (id) WITHIN 1 SECOND"
    guarded.create(stream_sql(f"{cards}_r", columns=f"id BIGINT, ts TIMESTAMP, {rule}"))
    summary = f"CREATE SUMMARY {cards}_s ON {cards} (id) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)"
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
