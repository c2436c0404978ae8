"""Many registrations that are prepared: the shard goes on until all is made, and they come by few batches."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from broker.base.settings import Settings
from broker.runtime.liveness import UNWATCHED
from broker.shard.preparations import PREPARED_S, Preparations
from broker.shard.shard_command import ShardCommand
from broker.shard.shard_state import ShardState
from broker.shard.trials import Trials
from tests.engine.prepared_twins import Twins, make_small

MANY = 20


def test_many_that_are_prepared_come_by_few_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    twins, woken = Twins(3), threading.Event()
    twins.rows(140)
    noted = tmp_path / "shards" / "0.trials.json"
    noted.parent.mkdir()
    trials = Trials(noted, 0)
    preparations = Preparations(0, Settings(service_id="t"), trials, ShardState(), UNWATCHED, woken.set)
    texts = (f"SELECT a FROM s WHERE t LIKE '%{n}%' EMIT CHANGES" for n in range(MANY))
    commands = [ShardCommand.register(f"q{n}", text, {}) for n, text in enumerate(texts)]

    # None comes yet, and all make progress without a wait for anything but a thread.
    outcomes = preparations.awaited(twins.timed, commands)
    assert [one["state"] for one in outcomes.values()] == ["PENDING"] * MANY
    while len(preparations.prepared) < MANY:
        woken.clear()
        if not preparations.some(has_room=True) and len(preparations.prepared) < MANY:
            assert woken.wait(60.0)
    assert preparations.progress == dict.fromkeys((one.name for one in commands), 1.0)

    # All come with one batch, each in a step of its own, as long as the steps before took little.
    assert preparations.awaited(twins.timed, commands) == {}
    groups = preparations.groups(commands)
    assert [len(group) for group in groups if group] == [1] * MANY
    assert not any(preparations.put_off(group, 0.0) for group in groups)
    (later,) = preparations.put_off(groups[-1], PREPARED_S)
    assert (later["state"], (later["error"] or {})["code"]) == ("PENDING", "being_prepared")
    for group in groups[:-1]:
        preparations.done(group)
    assert set(preparations.progress) == {commands[-1].name}
    assert preparations.awaited(twins.timed, [commands[-1]]) == {}

    # What nothing was prepared for is never put off.
    assert preparations.put_off([ShardCommand.drop("s")], PREPARED_S) == []
