"""A process that is there and does nothing is replaced; what hangs again and again is told apart."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from numba import njit
from numba.extending import overload

from broker.node.control_signs import ControlSigns
from broker.runtime import lives
from broker.runtime.compiling import COMPILATIONS
from broker.runtime.liveness import LOOP, Liveness, Pulse, Silent
from broker.runtime.lives import LifeEnd
from broker.shard.doing import doing
from broker.supervisor import cause
from engine.model.source import SourceName
from engine.model.step import Heartbeat, Register, Registration
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


def test_silence_is_that_of_a_thread_from_which_a_sign_is_due() -> None:
    pulse = Pulse(Liveness(None), 1, timeout_s=3_600.0)
    assert pulse.silence() == (0.0, "")  # it has not begun
    pulse.rest(3_600.0)
    assert pulse.silence()[0] == 0.0
    pulse.beat("it makes a step of ticks")
    wait_until(lambda: pulse.silence()[0] > 0.01)
    assert pulse.silence()[1] == "it makes a step of ticks"
    pulse.call(3_600.0, "it waits for Kafka")  # as long as it may take, an answer is due at once
    wait_until(lambda: pulse.silence()[0] > 0.01)
    assert pulse.silence()[1] == "it waits for Kafka"
    pulse.toil()
    assert pulse.silence() == (0.0, "")


def test_who_compiles_is_alive() -> None:
    pulse = Pulse(Liveness(None), 1, timeout_s=3_600.0)
    seen: list[float] = []

    def double(text: str) -> None: ...

    @overload(double)
    def _implemented(text):  # type: ignore[no-untyped-def]  # numba compares it with what it returns
        seen.append(pulse.silence()[0])  # in the midst of the compilation
        return lambda text: text + text

    COMPILATIONS.watch(pulse)
    pulse.beat("it makes a step")
    wait_until(lambda: pulse.silence()[0] > 0.01)
    assert njit(lambda text: double(text))("ab") == "abab"
    assert set(seen) == {0.0}
    wait_until(lambda: pulse.silence()[0] > 0.01)  # signs are due again


def test_the_control_process_is_missed_when_it_is_gone_silent_or_has_told_nothing() -> None:
    signs = ControlSigns()
    assert "not running" in str(signs.missing(3_600.0))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        signs.seen(process.pid, complete=False)
        assert "registry" in str(signs.missing(3_600.0))
        signs.seen(process.pid, complete=True)
        assert signs.missing(3_600.0) is None
        wait_until(lambda: signs.missing(0.01) is not None)
        assert "no sign of life" in str(signs.missing(0.01))
    assert "not running" in str(signs.missing(3_600.0))


def test_what_a_shard_does_is_named_without_texts() -> None:
    query = Registration("q1", "SELECT card FROM payments")
    assert doing(Register((query,))) == "it registers query q1"
    assert doing(Register((query,) * 5)) == "it registers queries q1, q1, q1 and 2 more"
    assert doing(Heartbeat(SourceName("ticks"))) == "it makes a step of ticks"


def test_whoever_reads_the_timer_amid_long_work_is_alive(tmp_path: Path) -> None:
    supervisor, child = Liveness(tmp_path / "alive", fresh=True), Liveness(tmp_path / "alive")
    shard = Pulse(child, 3, timeout_s=1.0)
    shard.beat("it makes a step of s")
    wait_until(lambda: bool(supervisor.silent(0.5)))
    (silent,) = supervisor.silent(0.5)
    assert (silent.slot, silent.at) == (3, "it makes a step of s")
    thread = threading.Thread(target=shard.timer)  # another's reading says nothing of this one
    thread.start()
    thread.join()
    assert supervisor.silent(0.5)
    assert shard.timer() <= shard.timer()
    wait_until(lambda: bool(shard.timer()) and not supervisor.silent(0.5))  # unless this waited for a core
    shard.toil()
    wait_until(lambda: bool(shard.timer() and supervisor.silent(0.0) == []))  # as long as it was to be silent


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
        lives.note(tmp_path, LifeEnd(at_s, "shard-2"))
        lives.note(tmp_path, LifeEnd(at_s, "memory", 100))
    assert lives.repeated(lives.read(tmp_path), now_s, 100) == []
    lives.note(tmp_path, LifeEnd(now_s, "shard-2"))
    lives.note(tmp_path, LifeEnd(now_s, "memory", 100))
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
        wait_until(lambda m=module, b=child: one.children().get(m, b).pid != b.pid)
    one.await_ready()
    assert len(one.rows(handle)) == 99
    assert len(one.rows(one.register(f"SELECT id FROM {name} WHERE id >= 50"))) == 49
    assert [end.cause for end in lives.read(one.data_dir)] == ["worker"]
    assert one.stop() == 0
