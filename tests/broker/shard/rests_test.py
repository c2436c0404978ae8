"""Which of the rests that shards ask for holds."""

from __future__ import annotations

from broker.shard.rests import RECENT_S, Rests


def test_longest_rest_that_was_asked_for_lately_holds() -> None:
    rests = Rests()
    assert rests.ask(0, 0.02, 100.0) == 0.02
    assert rests.ask(1, 0.0, 100.1) == 0.02
    assert rests.ask(0, 0.0, 100.2) == 0.0
    assert rests.ask(1, 0.01, 100.3) == 0.01
    assert rests.ask(0, 0.0, 100.3 + RECENT_S) == 0.0  # the other one has stopped, perhaps
