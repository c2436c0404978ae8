"""Requests that the end of a worker cuts off are answered, and are no defects."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.broker.conftest import stream_sql
from tests.broker.running import broker
from tests.kafka import wait_until


def test_a_write_is_told_that_the_broker_stops(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    with broker(kafka, tmp_path / "data", service_id) as one:
        one.create(stream_sql(name))
        handle = one.register(f"SELECT id FROM {name}")
        count = len(one.records(one.names.queries))
        control, worker = one.children()["broker.control"], one.children()["broker.worker"]
        control.suspend()  # nothing that is written is carried out
        try:
            with ThreadPoolExecutor() as pool:
                coming = pool.submit(one.http.post, "/queries", json={"sql": f"SELECT v FROM {name}"})
                changed = pool.submit(one.http.patch, f"/queries/{handle}", json={"weight": 2})
                wait_until(lambda: len(one.records(one.names.queries)) == count + 2, what="both are written")
                worker.send_signal(signal.SIGTERM)
                replies = coming.result(120), changed.result(120)
        finally:
            control.resume()
        for reply in replies:
            assert (reply.status_code, reply.json()["code"]) == (503, "broker_unavailable"), reply.text
            assert reply.headers["content-type"] == "application/json"
        assert "Traceback" not in one.log.read_text()
        one.await_ready()
        wait_until(lambda: one.state(replies[0].json()["handle"]) == "RUNNING")
