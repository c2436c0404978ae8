"""A query that keeps more than one query may is paused alone, and everybody is told why."""

from __future__ import annotations

from pathlib import Path

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

BASE_MS = 1_700_000_000_000
ROWS = 20_000
LIMIT_BYTES = 500_000


def test_a_query_with_too_much_state_is_paused_and_the_others_go_on(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, STATE_BYTES_MAX=LIMIT_BYTES).start()
    one.create(stream_sql(name, options=", partitions = 1"))
    heavy = one.register(f"SELECT id, COUNT(*) AS n FROM {name} [RANGE 1 DAY] GROUP BY id EMIT CHANGES")
    light = one.register(f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY] EMIT CHANGES")
    one.send(name, [{"id": i, "v": 0.5, "ts": BASE_MS + i} for i in range(ROWS)])
    wait_until(lambda: one.state(heavy) == "PAUSED", 120.0, "the heavy one is paused")
    told = one.http.get(f"/queries/{heavy}").json()["error"]
    assert told["code"] == "memory_paused"
    assert "state_bytes_max" in told["message"]
    assert "TUREEN_STATE_BYTES_MAX" in told["hint"]
    wait_until(lambda: one.rows(light) == [[ROWS - 1]], what="the light one has all rows")
    assert one.state(light) == "RUNNING"
    memory = one.http.get("/status").json()["memory"]
    assert memory["level"] == "normal"

    # It is paused again where it still keeps too much, and stays where it may keep so much.
    one.stop()
    one.settings["STATE_BYTES_MAX"] = str(1 << 30)
    one.start()
    assert one.http.patch(f"/queries/{heavy}", json={"paused": False}).json()["state"] == "RUNNING"
    wait_until(lambda: len(one.rows(heavy)) == ROWS - 1, what="it has all rows")
    assert one.stop() == 0
