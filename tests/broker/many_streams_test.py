"""Hundreds of streams in one broker: each has its own rows, whoever comes, goes or is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.broker.running import Broker
from tests.kafka import wait_until

COUNT = 200
AT_ONCE = 8
ROWS = 5


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_hundreds_of_streams_come_and_go_with_a_kill_between(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id).start()
    handles: dict[str, str] = {}
    rows: dict[str, int] = {}

    def come(stream: str) -> None:
        """With what its topic holds already."""
        one.create(f"CREATE STREAM {stream} (id BIGINT)")
        handles[stream] = one.register(f"SELECT id FROM {stream}")

    def go(stream: str) -> None:
        assert one.http.delete(f"/queries/{handles.pop(stream)}").status_code == 200
        assert one.http.post("/sources", json={"sql": f"DROP STREAM {stream}"}).status_code == 200

    def all_have(streams: list[str]) -> None:
        for stream in streams:
            wanted = [[number] for number in range(rows[stream])]
            wait_until(lambda: one.rows(handles[stream]) == wanted, 120, f"the rows of {stream}")  # noqa: B023

    def send(streams: list[str]) -> None:
        for stream in streams:
            first = rows.get(stream, 0)
            values = [b'{"id":%d}' % number for number in range(first, first + ROWS)]
            one.producer.send_many(stream, values)
            rows[stream] = first + ROWS
        one.producer.flush()

    names = [f"{name}_{number}" for number in range(COUNT)]
    first, dropped, late = names[: COUNT // 2], names[: COUNT // 4], names[COUNT // 2 :]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(come, first))
        send(first)
        all_have(first)
        list(pool.map(go, dropped))
        coming = [pool.submit(come, stream) for stream in late[: COUNT // 4]]
        send([stream for stream in first if stream in handles])
        for future in coming:
            future.result()
        one.kill()
        one.start()
        send([stream for stream in names if stream in handles])
        all_have(list(handles))
        list(pool.map(come, [*dropped, *late[COUNT // 4 :]]))
        send(names)
        all_have(names)
    assert one.children()["broker.worker"].num_threads() < COUNT
    assert one.stop() == 0
