"""Queries that nobody asks for leave memory, and come back with the answers they would have, also after the
broker was killed.
"""

from __future__ import annotations

from pathlib import Path

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

BASE_MS = 1_700_000_000_000
QUERIES = 24


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(start, start + count)]


def swapped_out(one: Broker) -> int:
    return sum(shard["swapped_out"] for shard in one.http.get("/status").json()["shards"])


def await_swapped_out(one: Broker, count: int) -> None:
    wait_until(lambda: swapped_out(one) == count, what=f"{count} queries are swapped out")


def test_queries_come_back_from_disk_through_kills(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, SWAP_AFTER_MS=700, SAVE_INTERVAL_MS=200)
    one.start()
    one.create(stream_sql(name))
    handles = [one.register(f"SELECT id FROM {name} WHERE id >= {n}") for n in range(QUERIES)]
    kept = one.register(f"SELECT COUNT(*) AS n FROM {name} EMIT CHANGES")
    one.send(name, rows(30))
    one.await_rows(handles[0], 29)
    await_swapped_out(one, QUERIES)

    told = one.http.get(f"/queries/{handles[3]}").json()
    assert (told["state"], told["swapped_out"], told["sql"][-7:]) == ("RUNNING", True, "id >= 3")
    assert len(one.http.get("/queries").json()["queries"]) == QUERIES + 1
    matched = one.http.post("/match", json={"source": name, "record": rows(1)[0]}).json()
    assert matched["swapped_out"] == QUERIES
    answer = one.snapshot(handles[3])
    assert answer["swapped_in_ms"] > 0
    assert answer["rows"] == [[n] for n in range(3, 29)]
    assert "swapped_in_ms" not in one.snapshot(handles[3])
    reply = one.http.get(f"/queries/{handles[4]}/snapshot?format=csv")
    assert float(reply.headers["tureen-swapped-in-ms"]) > 0
    assert one.http.get(f"/queries/{handles[5]}/plan").status_code == 200
    text = f"SELECT id FROM {name} WHERE id >= 6"
    assert one.register(text, handles[6]) == handles[6]

    await_swapped_out(one, QUERIES)
    assert one.http.delete(f"/queries/{handles[7]}").status_code < 300
    assert one.http.patch(f"/queries/{handles[8]}", json={"paused": True}).json()["state"] == "PAUSED"
    gone = one.http.get(f"/queries/{handles[7]}/snapshot")
    assert gone.status_code == 404

    one.kill()
    one.start()
    await_swapped_out(one, QUERIES - 1)
    one.send(name, rows(30, 30))
    one.await_rows(kept, 1)
    wait_until(lambda: one.source(name)["rows"] == 59, what="the rows are in")
    one.kill()
    one.start()
    assert one.http.get(f"/queries/{handles[7]}").status_code == 404
    assert len(one.http.get("/queries").json()["queries"]) == QUERIES
    assert one.http.patch(f"/queries/{handles[8]}", json={"paused": False}).json()["state"] == "RUNNING"
    for n, handle in enumerate(handles):
        if n != 7:
            assert one.snapshot(handle)["rows"] == [[row] for row in range(n, 59)]
    metrics = one.http.get("/metrics").text
    assert "tureen_queries_came_from_disk_total" in metrics
    one.close()
