"""Clients that follow queries while the broker is killed, stopped, started: nothing doubled, nothing lost."""

from __future__ import annotations

from pathlib import Path

import tureen
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.changes import AwayEvent, ChangesEvent, Event, SnapshotEvent

ROWS = 40
"""Sent before and after each fault."""


def test_changes_go_on_through_crashes_and_restarts(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    with broker(kafka, tmp_path / "data", service_id) as one, tureen.connect(one.url) as client:
        one.create(stream_sql(name, options=", idle_timeout = '50 milliseconds'"))
        each = client.register(f"SELECT id FROM {name} [RANGE 5 MILLISECONDS]")
        counted = client.register(f"SELECT v, COUNT(*) AS n, MAX(id) AS last FROM {name} GROUP BY v")
        sent = send(one, name, 0)
        wait_until(lambda: each.snapshot().now_ms == 1_000_000 + sent - 1, what="the first rows are in")
        told: list[Event] = []
        polled: list[Event] = []
        with (
            each.on_change(told.append, silence=5.0) as streaming,
            each.on_change(polled.append, poll=True, silence=2.0) as polling,
            counted.follow(key=["v"]) as live,
        ):
            wait_until(lambda: told and polled, what="the answers")
            kept = told[0].position
            sent = send(one, name, sent)
            one.kill()
            sent = send(one, name, sent)
            one.start()
            sent = send(one, name, sent)
            wait_until(lambda: last_id(told) == sent - 1, what="the changes after the crash")
            wait_until(lambda: last_id(polled) == sent - 1, what="the same by long polls")
            wait_until(lambda: total(live) == sent, what="the live answer")
            assert {row["n"] for row in live.dicts()} == {sent // 4}
            assert live.get(3.0) == {"v": 3.0, "n": sent // 4, "last": sent - 1}
            answer = counted.snapshot()
            assert sorted(map(str, live.dicts())) == sorted(map(str, answer.rows()))
            # Who was away for all of it gets the same, from the position that was kept.
            rest = [event for event in each.changes(kept, live=False) if not isinstance(event, AwayEvent)]
            assert exactly_once(rest) == list(range(ROWS, sent))
            one.stop()
            wait_until(lambda: streaming.away and live.away, what="that the broker has gone is told")
            assert (streaming.ended, live.over) == (None, None)  # which is no end
        assert (streaming.error, polling.error, live.error) == (None, None, None)
        for events in (told, polled):
            assert isinstance(events[0], SnapshotEvent)
            assert not any(isinstance(event, SnapshotEvent) for event in events[1:])  # no reset was needed
            assert exactly_once(events) == list(range(ROWS, sent))


def send(one: Broker, name: str, first: int) -> int:
    """Rows with the next ids, one a ms of their time; the id behind them."""
    one.send(name, [{"id": i, "v": float(i % 4), "ts": 1_000_000 + i} for i in range(first, first + ROWS)])
    return first + ROWS


def came(events: list[Event]) -> list[int]:
    return [
        change.row[0]
        for event in list(events)
        if isinstance(event, ChangesEvent)
        for change in event
        if change.weight > 0
    ]


def last_id(events: list[Event]) -> int | None:
    ids = came(events)
    return ids[-1] if ids else None


def total(live: tureen.LiveAnswer) -> int:
    return sum(row["n"] for row in live.dicts())


def exactly_once(events: list[Event]) -> list[int]:
    """The ids that came. Each goes six ms later and no other way; instants never go back."""
    at_ms = [change.at_ms for event in events if isinstance(event, ChangesEvent) for change in event]
    assert at_ms == sorted(at_ms)
    went = [
        change.row[0]
        for event in events
        if isinstance(event, ChangesEvent)
        for change in event
        if change.weight < 0
    ]
    assert len(went) == len(set(went))
    assert went == list(range(went[0], went[0] + len(went)))
    return came(events)
