"""What a shard waits for is told by name, the oldest first, and a stop ends every wait."""

from __future__ import annotations

from threading import Thread

import pytest

from broker.shard.stalls import Interrupted, Stalls
from tests.kafka import wait_until
from tureen.errors import KafkaUnavailable, TureenError

AWAY = KafkaUnavailable("Kafka is away")


def test_the_oldest_is_told_until_it_is_over() -> None:
    stalls = Stalls(0, retry_ms=0)
    assert stalls.first is None
    stalls.tell("journal", None)  # nothing to be over
    stalls.wait("journal", AWAY)
    stalls.tell("store", {"code": "store_full", "message": "no room"})
    stalls.tell("journal", {"code": "again", "message": "still"})
    assert stalls.first == {"code": "again", "message": "still"}
    assert "journal" in stalls
    assert "read" not in stalls
    stalls.tell("journal", None)
    assert stalls.first == {"code": "store_full", "message": "no room"}
    stalls.end(TureenError("it broke"))
    assert stalls.first is not None
    assert stalls.first["message"] == "it broke"


def test_a_stop_ends_waits_now_and_later() -> None:
    stalls = Stalls(0, retry_ms=3_600_000)
    ended: list[str] = []

    def waits() -> None:
        with pytest.raises(Interrupted):
            stalls.wait("journal", AWAY)
        ended.append("interrupted")

    shard = Thread(target=waits, daemon=True)
    shard.start()
    wait_until(lambda: stalls.first == AWAY.as_dict(), what="the shard waits")
    assert not stalls.stopping
    stalls.stop()
    wait_until(lambda: not shard.is_alive(), what="the wait has ended")
    assert ended == ["interrupted"]
    assert stalls.stopping
    with pytest.raises(Interrupted):
        stalls.wait("store", AWAY)
