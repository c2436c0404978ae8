"""What a shard waits for is told by name, the oldest first, and a stop ends every wait."""

from __future__ import annotations

from threading import Thread

import pytest

from broker.shard.troubles import Interrupted, Troubles
from tests.kafka import wait_until
from tureen.errors import KafkaUnavailable, TureenError

AWAY = KafkaUnavailable("Kafka is away")


def test_the_oldest_is_told_until_it_is_over() -> None:
    troubles = Troubles(0, retry_ms=0)
    assert troubles.first is None
    troubles.tell("journal", None)  # nothing to be over
    troubles.wait("journal", AWAY)
    troubles.tell("store", {"code": "store_full", "message": "no room"})
    troubles.tell("journal", {"code": "again", "message": "still"})
    assert troubles.first == {"code": "again", "message": "still"}
    assert "journal" in troubles
    assert "read" not in troubles
    troubles.tell("journal", None)
    assert troubles.first == {"code": "store_full", "message": "no room"}
    troubles.end(TureenError("it broke"))
    assert troubles.first is not None
    assert troubles.first["message"] == "it broke"


def test_a_stop_ends_waits_now_and_later() -> None:
    troubles = Troubles(0, retry_ms=3_600_000)
    ended: list[str] = []

    def waits() -> None:
        with pytest.raises(Interrupted):
            troubles.wait("journal", AWAY)
        ended.append("interrupted")

    shard = Thread(target=waits, daemon=True)
    shard.start()
    wait_until(lambda: troubles.first == AWAY.as_dict(), what="the shard waits")
    assert not troubles.stopping
    troubles.stop()
    wait_until(lambda: not shard.is_alive(), what="the wait has ended")
    assert ended == ["interrupted"]
    assert troubles.stopping
    with pytest.raises(Interrupted):
        troubles.wait("store", AWAY)
