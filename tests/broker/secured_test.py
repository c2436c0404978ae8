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

        wait_until(ready, 60, "ready over TLS")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            for path in ("/queries", "/status", "/metrics", "/docs", "/openapi.json"):
                reply = client.get(path, headers=headers)
                assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized")
        reply = client.get("/queries", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (reply.status_code, reply.json()["queries"]) == (200, [])
    assert TOKEN not in one.log.read_text()
