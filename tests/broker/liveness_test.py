"""A process that is there and does nothing is replaced; what hangs again and again is told apart."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from broker import lives
from broker.liveness import LOOP, Liveness, Pulse, Silent
from broker.lives import End
from broker.supervisor import cause
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

BASE_MS = 1_700_000_000_000
TIMEOUT_MS = 4_000
TIMEOUT_S = TIMEOUT_MS / 1_000


def test_a_silent_slot_is_found_and_only_in_use(tmp_path: Path) -> None:
    supervisor = Liveness(tmp_path / "alive", fresh=True)
    child = Liveness(tmp_path / "alive")
    supervisor.start(silent_s=3_600.0)
    assert supervisor.silent(0.0) == []  # it may take its time to start
    child.beat(LOOP)
    shard = Pulse(child, 3, timeout_s=3_600.0)
    shard.beat()
    wait_until(lambda: len(supervisor.silent(0.0)) == 2)
    assert [(one.slot, one.busy) for one in supervisor.silent(0.0)] == [(LOOP, True), (3, True)]
    assert supervisor.silent(3_600.0) == []
    shard.rest()
    child.beat(LOOP, silent_s=3_600.0)
    assert supervisor.silent(0.0) == []
    shard.beat()
    shard.end()
    assert supervisor.silent(0.0) == []


def test_silence_counts_from_the_supervisors_own_return(tmp_path: Path) -> None:
    liveness = Liveness(tmp_path / "alive", fresh=True)
    liveness.beat(LOOP)
    wait_until(lambda: bool(liveness.silent(0.001)))
    assert liveness.silent(0.001, since_s=time.monotonic() + 3_600.0) == []


def test_the_cause_is_a_shard_that_alone_hangs_at_work() -> None:
    loop, busy, idle = Silent(LOOP, 9.0, True), Silent(3, 9.0, True), Silent(4, 9.0, False)
    assert cause([busy], [busy]) == "shard-2"
    assert cause([idle], [idle]) == "worker"
    assert cause([loop], [loop]) == "worker"
    assert cause([busy], [loop, busy]) == "worker"  # the process was stopped while the shard was at work
    assert cause([loop, busy], [loop, busy]) == "worker"


def test_a_loop_is_the_same_end_several_times_of_late(tmp_path: Path) -> None:
    now_s = 1_000_000.0
    assert lives.read(tmp_path) == []
    for at_s in (now_s - 2_000, now_s - 20, now_s - 10):
        lives.note(tmp_path, End(at_s, "shard-2"))
        lives.note(tmp_path, End(at_s, "memory", 100))
    assert lives.repeated(lives.read(tmp_path), now_s, 100) == []
    lives.note(tmp_path, End(now_s, "shard-2"))
    lives.note(tmp_path, End(now_s, "memory", 100))
    assert lives.repeated(lives.read(tmp_path), now_s, 100) == ["memory", "shard-2"]
    assert lives.repeated(lives.read(tmp_path), now_s, 200) == ["shard-2"]  # the budget is another
    lives.forget(tmp_path, ["shard-2"])
    assert lives.repeated(lives.read(tmp_path), now_s, 100) == ["memory"]
    (tmp_path / lives.NAME).write_text("nonsense")
    assert lives.read(tmp_path) == []


def test_frozen_children_are_replaced_and_shards_go_on(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, LIVENESS_TIMEOUT_MS=TIMEOUT_MS).start()
    one.create(stream_sql(name))
    handle = one.register(f"SELECT id FROM {name}")
    one.send(name, [{"id": i, "v": 0, "ts": BASE_MS + i} for i in range(100)])
    one.await_rows(handle, 99)
    before = one.children()
    for child in before.values():
        child.send_signal(signal.SIGSTOP)
    for module, child in before.items():
        wait_until(lambda m=module, b=child: one.children().get(m, b).pid != b.pid, 60.0)
    one.await_ready()
    assert len(one.rows(handle)) == 99
    assert len(one.rows(one.register(f"SELECT id FROM {name} WHERE id >= 50"))) == 49
    assert [end.cause for end in lives.read(one.data_dir)] == ["worker"]
    assert one.stop() == 0
