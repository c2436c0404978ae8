"""What is hardly meant is told at registration and where a text is checked; hints fit who asks."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker, unique_name


def test_windows_beyond_retention_are_told(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name) + " RETAIN 1 HOUR")
    sql = f"SELECT window_end, COUNT(*) AS n FROM TUMBLE({name}, INTERVAL '30' DAY) GROUP BY window_end"
    checked = shared.http.post("/statements/check", json={"sql": sql}).json()
    (told,) = checked["warnings"]
    assert (told["code"], told["column"]) == ("window_beyond_retention", sql.index("TUMBLE") + 1)
    registered = shared.http.post("/queries", json={"sql": sql})
    assert (registered.status_code, registered.json()["warnings"]) == (201, [told])
    short = sql.replace("'30' DAY", "'30' MINUTE")
    assert shared.http.post("/statements/check", json={"sql": short}).json()["warnings"] == []


def test_a_token_that_only_reads_is_not_told_to_register(kafka: str, tmp_path: Path, service_id: str) -> None:
    tokens = {"HTTP_TOKEN": "a-token-of-the-operator", "HTTP_READ_TOKEN": "another-token-that-only-reads"}
    with broker(kafka, tmp_path / "data", service_id, **tokens) as one:
        name = unique_name()
        own = httpx.Client(base_url=one.url, headers={"Authorization": f"Bearer {tokens['HTTP_TOKEN']}"})
        reads = httpx.Client(
            base_url=one.url, headers={"Authorization": f"Bearer {tokens['HTTP_READ_TOKEN']}"}
        )
        with own, reads:
            assert own.post("/sources", json={"sql": stream_sql(name)}, timeout=60.0).status_code < 300
            sql = f"SELECT id FROM {name}"
            hints = [
                client.post("/statements", json={"sql": sql}, timeout=60.0).json()["hint"]
                for client in (own, reads)
            ]
    assert hints[0].startswith("register it")
    assert "by its handle" in hints[1]
    assert "register it" not in hints[1]
