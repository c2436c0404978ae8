"""A budget for the worker's memory: what it is made from, and what is not done any more when it is short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from broker.memory.budget import (
    CONTROL_BYTES,
    KAFKA_BYTES,
    LEAST_BYTES,
    SHARE,
    Budget,
    budget,
    budget_warning,
    reserve_warning,
    useful_bytes,
)
from broker.memory.held import HeldMemory
from broker.memory.levels import GRANTED_S, Level, Memory, level_after
from broker.memory.spill import Spill
from broker.runtime.liveness import Liveness
from engine.queries.footprint import Footprint
from storage.spill_files import SpillFiles
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.errors import MIB, MemoryBudgetExceeded, SettingsError
from tureen.protocol import new_handle, query_id

GIB = 1024 * MIB
BASE_MS = 1_700_000_000_000


def machine(root: Path, memory_bytes: int, cgroup: str, limits: dict[str, str]) -> Path:
    """A root with /proc and /sys of such a machine."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: {memory_bytes // 1024} kB\n")
    (root / "proc/self/cgroup").write_text(cgroup)
    for path, text in limits.items():
        at = root / "sys/fs/cgroup" / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    return root


@pytest.mark.parametrize(
    ("cgroup", "limits", "wanted_bytes"),
    [
        ("0::/\n", {}, 8 * GIB),
        ("0::/a/b\n", {"a/memory.max": f"{2 * GIB}\n", "a/b/memory.max": "max\n"}, 2 * GIB),
        ("0::/a/b\n", {"a/memory.max": f"{2 * GIB}\n", "a/b/memory.max": f"{GIB}\n"}, GIB),
        ("0::/elsewhere\n", {"memory.max": f"{3 * GIB}\n"}, 3 * GIB),
        (
            "4:cpu,memory:/pod/one\n0::/\n",
            {"memory/pod/one/memory.limit_in_bytes": f"{GIB}", "memory/memory.limit_in_bytes": f"{1 << 62}"},
            GIB,
        ),
    ],
)
def test_the_budget_is_the_least_limit_less_what_others_need(
    tmp_path: Path, cgroup: str, limits: dict[str, str], wanted_bytes: int
) -> None:
    root = machine(tmp_path, 8 * GIB, cgroup, limits)
    found = budget(0, embedded_kafka=False, root=root)
    assert found.limit_bytes == wanted_bytes
    assert found.budget_bytes == wanted_bytes - int(SHARE * wanted_bytes) - CONTROL_BYTES
    assert not found.is_set
    given = budget(LEAST_BYTES, embedded_kafka=True, root=root)
    assert (given.budget_bytes, given.is_set) == (LEAST_BYTES, True)


def test_a_budget_and_a_machine_that_do_not_meet_are_refused(tmp_path: Path) -> None:
    root = machine(tmp_path, GIB, "0::/\n", {})
    with pytest.raises(SettingsError, match="above the"):
        budget(GIB + 1, embedded_kafka=False, root=root)
    with pytest.raises(SettingsError, match="could register nothing"):
        budget(LEAST_BYTES - 1, embedded_kafka=False, root=root)
    with pytest.raises(SettingsError, match="too little"):
        budget(0, embedded_kafka=True, root=root)
    tight = budget(GIB, embedded_kafka=False, root=root)
    assert str(CONTROL_BYTES // 10**6) in (reserve_warning(tight, embedded_kafka=False) or "")
    assert reserve_warning(budget(0, embedded_kafka=False, root=root), embedded_kafka=False) is None
    assert KAFKA_BYTES > 0


def test_levels_begin_higher_than_they_end() -> None:
    assert level_after(Level.NORMAL, 0.79) == Level.NORMAL
    assert level_after(Level.NORMAL, 0.80) == Level.REFUSE
    assert level_after(Level.NORMAL, 0.97) == Level.HOLD
    assert level_after(Level.NORMAL, 1.2) == Level.SHED
    assert level_after(Level.REFUSE, 0.79) == Level.REFUSE
    assert level_after(Level.HOLD, 0.91) == Level.HOLD
    assert level_after(Level.HOLD, 0.89) == Level.REFUSE
    assert level_after(Level.HOLD, 0.77) == Level.NORMAL


def test_the_larger_of_held_and_counted_decides() -> None:
    clock, held, liveness = [0.0], [100], Liveness(None)
    memory = Memory(
        Budget(1_000, 1_000, "this machine", True), liveness, HeldMemory(lambda: held[0], lambda: clock[0])
    )

    def after(held_bytes: int) -> tuple[int, Level]:
        held[0] = held_bytes
        clock[0] += 1.0
        return memory.used, memory.level

    assert after(300) == (300, Level.NORMAL)
    memory.accounts.counted(3, Footprint(rows=500, composites=250, by_source={"s": 500}))
    assert after(300) == (850, Level.REFUSE)  # with the 100 of the process itself
    assert liveness.memory == (850, 1_000)
    refused = memory.refuses(Level.REFUSE, "nothing is registered")
    assert refused is not None
    assert (refused.code, refused.used_bytes, refused.budget_bytes) == ("memory_budget", 850, 1_000)
    assert "the rows of s take 500 bytes" in (refused.hint or "")
    assert memory.refuses(Level.HOLD, "nothing is read") is None
    with memory.accounts.answering(100):
        assert after(300) == (1_050, Level.SHED)
    assert after(910) == (910, Level.HOLD)  # it lasts down to 0.90
    assert after(300) == (850, Level.REFUSE)
    memory.accounts.counted(3, None)
    assert after(960) == (960, Level.HOLD)
    assert memory.facts()["uncounted_bytes"] == 860
    assert "860 bytes are compiled code" in (memory.error("nothing is read").hint or "")
    assert after(500) == (500, Level.NORMAL)


def test_an_answer_is_granted_memory_while_nobody_would_be_paused_for_it() -> None:
    clock, held = [0.0], [500]
    memory = Memory(
        Budget(1_000, 1_000, "this machine", True),
        Liveness(None),
        HeldMemory(lambda: held[0], lambda: clock[0]),
    )
    memory.require_room(300)
    with pytest.raises(MemoryBudgetExceeded, match="MiB more") as refused:
        memory.require_room(200)  # the 300 may not be held yet
    assert (refused.value.code, refused.value.used_bytes, refused.value.budget_bytes) == (
        "memory_budget",
        500,
        1_000,
    )
    assert "narrow the window" in (refused.value.hint or "")
    clock[0] += GRANTED_S
    memory.require_room(200)
    clock[0] += GRANTED_S
    held[0] = 919
    with pytest.raises(MemoryBudgetExceeded):
        memory.require_room(2)


def test_the_worker_itself_is_told_as_the_cause_where_it_is() -> None:
    clock = [0.0]
    memory = Memory(
        Budget(1_000, 1_000, "this machine", True), Liveness(None), HeldMemory(lambda: 700, lambda: clock[0])
    )
    memory.accounts.counted(0, Footprint(rows=100, by_source={"s": 100}))
    hint = memory.error("nothing is registered").hint or ""
    assert "the worker takes 700 bytes without a row" in hint
    assert "rows of s" not in hint
    memory.accounts.counted(0, Footprint(rows=100, answers=250, by_source={"s": 100}))
    assert "state that queries keep take 250 bytes" in (memory.error("nothing is registered").hint or "")


def test_nobody_is_paused_while_rows_leave_or_intake_is_held_since_a_moment(tmp_path: Path) -> None:
    clock, held = [0.0], [500]
    process = HeldMemory(lambda: held[0], lambda: clock[0])
    spill = Spill(SpillFiles(tmp_path), 1_000, 1 << 30, process)
    memory = Memory(Budget(1_000, 1_000, "this machine", True), Liveness(None), process, spill)

    def after(held_bytes: int, seconds: float) -> float:
        held[0] = held_bytes
        clock[0] += seconds
        return memory.stuck_s

    assert after(890, 9.0) == 0.0
    assert after(930, 1.0) == 0.0
    assert after(980, 4.0) == 4.0
    assert spill.write([np.zeros(4_096, np.uint8)]) is not None
    assert after(980, 3.0) == 3.0  # since rows left
    assert after(900, 3.0) == 6.0
    assert after(840, 1.0) == 0.0
    assert after(910, 1.0) == 0.0


def test_what_was_freed_is_given_back_before_a_registration_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, held, trims = [0.0], [500], []

    def trimmed() -> None:
        trims.append(clock[0])
        held[0] = 700

    monkeypatch.setattr("broker.memory.levels.trim_heap", trimmed)
    process = HeldMemory(lambda: held[0], lambda: clock[0])
    memory = Memory(Budget(1_000, 1_000, "this machine", True), Liveness(None), process)
    held[0], clock[0] = 810, 2.0
    assert memory.refuses(Level.REFUSE, "nothing is registered") is None
    assert trims == [2.0]
    monkeypatch.setattr("broker.memory.levels.trim_heap", lambda: None)
    held[0] = 810
    clock[0] = 4.0
    assert memory.refuses(Level.REFUSE, "nothing is registered") is not None


def test_a_budget_that_the_worker_fills_without_a_row_is_refused_and_one_with_little_room_told(
    tmp_path: Path,
) -> None:
    root = machine(tmp_path, 8 * GIB, "0::/\n", {})
    little = budget(useful_bytes() - MIB, embedded_kafka=False, root=root)
    assert f"{useful_bytes():,}" in (budget_warning(little) or "")
    assert budget_warning(budget(useful_bytes(), embedded_kafka=False, root=root)) is None
    full = Memory(little, Liveness(None), HeldMemory(lambda: int(0.81 * little.budget_bytes)))
    with pytest.raises(SettingsError, match="without a row"):
        full.require_useful()
    Memory(little, Liveness(None), HeldMemory(lambda: int(0.5 * little.budget_bytes))).require_useful()


def wide(first: int, count: int) -> list[dict[str, object]]:
    """Rows of about half a KiB, no two texts alike."""
    return [{"id": i, "v": f"{i:09d}" * 60, "ts": BASE_MS + i} for i in range(first, first + count)]


def test_short_of_memory_the_broker_refuses_pauses_and_holds_and_goes_on_with_room(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(
        kafka, tmp_path / "data", service_id, MEMORY_BUDGET_BYTES=320 * MIB, SPILL_BYTES_MAX=0
    ).start()
    columns = "id BIGINT, v STRING, ts TIMESTAMP"
    one.create(stream_sql(name, columns=columns, options=", partitions = 1"))
    light = one.register(f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY]")
    sql = f"SELECT id, v, v AS w FROM {name} [RANGE 1 DAY]"
    body = {"sql": sql, "options": {"maintenance": "eager"}, "handle": (heavy := new_handle())}
    assert one.http.post("/queries", json=body).status_code == 201
    sent = 0

    def level() -> str:
        return str(one.http.get("/status").json()["memory"]["level"])

    def full() -> bool:
        nonlocal sent
        one.send(name, wide(sent, 10_000))
        sent += 10_000
        return level() in ("hold", "shed")

    wait_until(full, 120.0, "intake is held")
    code, facts = one.readiness()
    assert (code, facts["reasons"][0]["code"]) == (503, "memory_budget")
    assert "RETAIN" in facts["reasons"][0]["hint"]

    # Nothing is registered and no stream created, whichever way they come.
    for path, asked in (("/queries", f"SELECT id FROM {name}"), ("/sources", stream_sql(f"{name}x"))):
        refused = one.http.post(path, json={"sql": asked})
        assert (refused.status_code, refused.json()["code"]) == (503, "memory_budget"), refused.text
    by_topic = new_handle()
    one.publish(by_topic, {"sql": f"SELECT id FROM {name}"})
    wait_until(lambda: one.state(by_topic) == "ERROR")
    wait_until(lambda: query_id(by_topic) in one.status_topic(), what="the refusal is told")
    (status,) = one.status_topic()[query_id(by_topic)]
    assert status is not None
    assert status["error"]["code"] == "memory_budget"

    # The heaviest query is paused, and everybody is told why; what costs nothing goes on.
    wait_until(lambda: one.state(heavy) == "PAUSED", what="the heaviest is paused")
    assert one.state(light) == "RUNNING"
    told = one.http.get(f"/queries/{heavy}").json()
    assert told["error"]["code"] == "memory_paused"

    def published() -> tuple[Any, Any]:
        status = one.status_topic()[query_id(heavy)][-1] or {}
        return status.get("state"), status.get("error")

    wait_until(lambda: published() == ("PAUSED", told["error"]), what="the status topic has it")
    named = [each for each in one.readiness()[1]["degraded"] if each.get("query_id") == query_id(heavy)]
    assert [each["code"] for each in named] == ["memory_paused"]
    wait_until(lambda: "tureen_memory_pauses_total 1.0" in one.http.get("/metrics").text)
    assert "tureen_memory_budget_bytes 3.3554432e+08" in one.http.get("/metrics").text

    # With a larger budget everything that waits is read, and the pause is still there until it is resumed.
    one.stop()
    one.settings["MEMORY_BUDGET_BYTES"] = str(4 * GIB)
    one.start()
    wait_until(lambda: one.rows(light) == [[sent - 1]], what="all is read")
    assert one.state(heavy) == "PAUSED"
    assert one.http.get(f"/queries/{heavy}").json()["error"] == told["error"]
    resumed = one.http.patch(f"/queries/{heavy}", json={"paused": False})
    assert (resumed.status_code, resumed.json()["state"], resumed.json()["error"]) == (200, "RUNNING", None)
    assert one.readiness()[1]["degraded"] == []
    wait_until(lambda: one.state(by_topic) == "RUNNING")  # what was refused by topic has room now
    assert one.stop() == 0
