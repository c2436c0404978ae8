"""A SELECT on a stream whose last rows are above NOW: given soon, and it says what it lacks."""

from __future__ import annotations

import time

from tests.broker.doors import Door
from tests.broker.running import unique_name

ROWS = 3
SOON_S = 20.0
"""Less than a write of these brokers is waited for; it takes two seconds."""


def test_rows_above_now_are_waited_for_a_little_and_told(door: Door) -> None:
    name = unique_name()
    door.broker.admin.ensure_source_topic(name, 1, arrival_time=False, table=False)
    door.broker.send(name, [{"k": k, "ts": f"2026-01-31T09:15:0{k}Z"} for k in range(ROWS)])
    with door.connect() as connection:
        told: list[str | None] = []
        connection.add_notice_handler(lambda one: told.append(one.message_primary))
        connection.execute(
            f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (topic = '{name}', timestamp = 'ts', "
            "lateness = '5 seconds', idle_timeout = '1 hour')"
        )
        connection.execute(f"SELECT * FROM {name}")  # whatever it takes to read them
        told.clear()
        began_s = time.monotonic()
        assert connection.execute(f"SELECT * FROM {name}").fetchall() == []
        assert time.monotonic() - began_s < SOON_S
        assert told == [f"incomplete: {name} is catching up: all 3 records read, 3 rows wait for NOW"]
