"""TLS and the token: what an address that others can reach needs.

``tls/`` holds a certificate of localhost, signed by itself, and its key; both serve these tests alone.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx

from tests.broker.running import READY_S, Broker
from tests.kafka import wait_until

TOKEN = "a-token-of-more-than-16-characters"
READ_TOKEN = "another-token-that-only-reads"
CERTIFICATE = Path(__file__).parent / "tls" / "certificate.pem"


def test_a_reachable_address_without_tls_is_refused(kafka: str, tmp_path: Path, service_id: str) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, HTTP_HOST="0.0.0.0")
    assert one.launch().wait(READY_S) == 1
    assert "can be reached from other machines" in one.log.read_text()


def test_tls_and_token(kafka: str, tmp_path: Path, service_id: str) -> None:
    one = Broker(
        kafka,
        tmp_path / "data",
        service_id,
        HTTP_HOST="0.0.0.0",
        HTTP_TOKEN=TOKEN,
        HTTP_READ_TOKEN=READ_TOKEN,
        PAGE="read-only",
        HTTP_TLS_CERTIFICATE=CERTIFICATE,
        HTTP_TLS_KEY=CERTIFICATE.with_name("key.pem"),
    )
    one.launch()
    trust = ssl.create_default_context(cafile=str(CERTIFICATE))
    with httpx.Client(base_url=f"https://localhost:{one.port}", verify=trust) as client:

        def ready() -> bool:
            try:
                return client.get("/readycheck").status_code == 200
            except httpx.HTTPError:
                return False

        wait_until(ready, READY_S, "ready over TLS")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            for path in ("/queries", "/status", "/metrics", "/docs", "/openapi.json"):
                reply = client.get(path, headers=headers)
                assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized")
        reply = client.get("/queries", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (reply.status_code, reply.json()["queries"]) == (200, [])
        files_are_open(client)
        reader_reads(client)
    log = one.log.read_text()
    assert TOKEN not in log
    assert READ_TOKEN not in log


def files_are_open(client: httpx.Client) -> None:
    """The page itself holds no data."""
    for path in ("/", "/page/app.js"):
        assert client.get(path, headers={"Accept": "text/html"}).status_code == 200, path
    assert client.get("/me").status_code == 401


def reader_reads(client: httpx.Client) -> None:
    """With the token that only reads."""
    full, read = ({"Authorization": f"Bearer {token}"} for token in (TOKEN, READ_TOKEN))
    assert client.get("/me", headers=full).json() == {"operator": True, "read_only": True, "because": "page"}
    assert client.get("/me", headers=read).json() == {
        "operator": False,
        "read_only": True,
        "because": "token",
    }
    stream = "CREATE STREAM watched (id BIGINT)"
    assert client.post("/sources", json={"sql": stream}, headers=full).status_code == 201
    query = client.post("/queries", json={"sql": "SELECT id FROM watched"}, headers=full).json()
    handle, name = query["handle"], query["query_id"]
    own = ("", "/snapshot", "/changes?live=false", "/plan")
    of_query = [f"/queries/{handle}{path}" for path in own]
    for path in ("/status", "/queries", "/sources", "/entities", "/metrics", f"/plans/{name}", *of_query):
        assert client.get(path, headers=read).status_code == 200, path
    for sql in ("SHOW QUERIES", "DESCRIBE watched", "EXPLAIN SELECT id FROM watched"):
        assert client.post("/statements", json={"sql": sql}, headers=read).status_code == 200, sql
    records = {"source": "watched", "record": {"id": 1}}
    assert client.post("/match", json=records, headers=read).json()["matches"][0]["total"] == 1
    assert client.get("/sources/watched", headers=read).json()["read_by"]["queries"] == 1
    for path in ("/topics", "/sources/watched/records", "/sources/watched/records?which=dead_letters"):
        reply = client.get(path, headers=read)
        assert (reply.status_code, reply.json()["code"]) == (403, "not_allowed"), path
        assert client.get(path, headers=full).status_code == 200, path
    for headers, status in ((read, 403), (full, 200)):
        reply = client.post("/sources/infer", json={"topic": "watched"}, headers=headers)
        assert reply.status_code == status
    plan = client.get(f"/plans/{name}", headers=read).json()
    assert client.post("/plans/validate", json={"plan": plan}, headers=read).status_code == 200
    for method, path, body in (
        ("POST", "/queries", {"sql": "SELECT id FROM watched"}),
        ("POST", "/queries/unregister", {"source": "watched"}),
        ("POST", "/sources", {"sql": "DROP STREAM watched"}),
        ("POST", "/statements", {"sql": f"PAUSE '{handle}'"}),
        ("POST", "/statements", {"sql": "DROP STREAM watched CASCADE"}),
        ("POST", "/retry", {}),
        ("PATCH", f"/queries/{handle}", {"paused": True}),
        ("PATCH", f"/entities/query/{handle}", {"weight": 2}),
        ("PUT", f"/plans/{handle}", {"plan": plan}),
        ("DELETE", f"/queries/{handle}", None),
        ("DELETE", "/sources/watched?cascade=true", None),
    ):
        reply = client.request(method, path, json=body, headers=read)
        assert (reply.status_code, reply.json()["code"]) == (403, "not_allowed"), (method, path)
        assert "only reads" in reply.json()["message"]
    # By its id the operator alone sees more than lists do.
    assert client.get(f"/queries/{name}", headers=full).status_code == 200
    reply = client.get(f"/queries/{name}", headers=read)
    assert (reply.status_code, reply.json()["code"]) == (404, "handle_needed")
    assert client.get(f"/queries/{handle}", headers=read).json()["state"] == "RUNNING"
