"""Registrations whose condition takes long for the rows that are there: they are worked out in slices, can be
given up, end no shard, and those over which workers died are refused.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tureen
from broker.runtime import lives
from tests.broker.dear_queries import (
    COUNT,
    Gate,
    dear,
    error,
    is_under_way,
    kill_worker,
    register,
    rows,
    until,
)
from tests.broker.running import Broker
from tureen.protocol import new_handle, query_id

pytestmark = pytest.mark.timeout(600)


def noted(one: Broker) -> list[Path]:
    """What shards have noted of registrations that may end their worker."""
    return list((one.data_dir / "shards").glob("*.trials.json"))


def changes(one: Broker, handle: str, topic: str = "") -> list[int]:
    """Ids of the rows that its result topic was told of, ascending."""
    key = query_id(handle).encode()
    mine = [record.value() for record in one.records(topic or one.names.results_log) if key in record.key()]
    return sorted(int(found[1]) for value in mine if (found := re.search(rb'"id":(\d+)', value or b"")))


def test_watching_waits_for_a_registration_that_is_worked_out(one: Broker, name: str, gate: Gate) -> None:
    command = [sys.executable, "-m", "tureen", "watch", dear(name), "--once", "--json", "--url", one.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"is being made" in process.stderr.readline()
        gate.open()
        shown, said = process.communicate(timeout=240)
    assert process.returncode == 0, said.decode()
    first = json.loads(shown.splitlines()[0])
    assert first["rows"] == [[COUNT - 5 + i] for i in range(4)]
    until(lambda: len(one.http.get("/queries").json()["queries"]) == 1, "what was watched is gone")


def test_others_go_on_while_a_registration_is_worked_out(one: Broker, name: str, gate: Gate) -> None:
    handle = register(one, dear(name))["handle"]
    until(lambda: is_under_way(one, handle))
    described = one.http.get(f"/queries/{handle}").json()
    assert (described["state"], described["error"]["code"]) == ("PENDING", "being_prepared")
    refused = one.http.get(f"/queries/{handle}/snapshot")
    assert refused.json()["code"] == "query_not_running"

    # Others come, rows come, answers are given, and it is not done meanwhile.
    other = one.register(f"SELECT MAX(id) AS m FROM {name} [RANGE 1 DAY]")
    one.send(name, rows(10, COUNT))
    until(lambda: one.rows(other) == [[COUNT + 8]])
    assert is_under_way(one, handle)

    # It is given up by its handle, and nothing of it is left.
    gone = one.http.delete(f"/queries/{handle}")
    assert (gone.status_code, gone.json()["state"]) == (200, "GONE")
    assert one.state(handle) is None
    assert not noted(one)

    # Another is paused: that costs nothing. It is worked out when it is to run.
    sent = one.http.post("/queries", json={"sql": dear(name, 1), "options": {"paused": True}})
    paused = sent.json()["handle"]
    until(lambda: one.state(paused) == "PAUSED")
    assert one.http.patch(f"/queries/{paused}", json={"paused": False}).status_code in (200, 202)
    again = register(one, dear(name))["handle"]
    until(lambda: is_under_way(one, paused))
    with ThreadPoolExecutor(1) as pool, tureen.connect(one.url) as client:
        waited = new_handle()
        waits = pool.submit(client.register, dear(name, 2), waited, wait=240.0)
        until(lambda: one.state(waited) == "PENDING")
        assert not waits.done()
        gate.open()
        assert waits.result().state == "RUNNING"
    for each in (paused, again):
        until(lambda each=each: one.state(each) == "RUNNING")  # type: ignore[misc]
    assert one.rows(again) == [[i] for i in range(COUNT - 5, COUNT + 9)]
    assert one.rows(paused) == [[i] for i in range(COUNT - 6, COUNT + 9)]
    assert error(one, again) == {}
    one.send(name, rows(2, COUNT + 10))
    until(lambda: one.rows(again)[-1] == [COUNT + 10])
    assert not noted(one)
    expected = list(range(COUNT - 5, COUNT + 11))
    until(lambda: changes(one, again) == expected)
    one.kill()
    one.start()
    until(lambda: one.rows(again) == [[i] for i in expected])
    assert one.state(handle) is None
    assert changes(one, again) == expected  # a replay tells nothing again
    assert one.stop() == 0


@pytest.mark.slow
def test_who_kills_the_worker_blames_no_registration(one: Broker, name: str, gate: Gate) -> None:
    handle = register(one, dear(name))["handle"]
    for _ in range(3):
        until(lambda: is_under_way(one, handle))
        kill_worker(one)
    until(lambda: is_under_way(one, handle))
    one.kill()
    one.start()
    until(lambda: is_under_way(one, handle))
    assert lives.read(one.data_dir) == []
    gate.open()
    until(lambda: one.state(handle) == "RUNNING")
    assert one.rows(handle)[-1] == [COUNT - 2]
    assert not noted(one)
    assert one.stop() == 0


def test_a_registration_over_which_workers_ended_is_tried_once_more_then_refused(
    one: Broker, name: str, gate: Gate
) -> None:
    handle, sql = "A" * 43, f"SELECT id FROM {name} WHERE fatal(id) = 7 EMIT CHANGES"
    one.publish(handle, {"sql": sql})
    until(lambda: [each.cause for each in lives.read(one.data_dir)] == ["crash", "crash"])
    one.await_ready()
    until(lambda: one.state(handle) == "ERROR")
    told = error(one, handle)
    assert (told["code"], "unregister" in told["hint"]) == ("registration_ends_worker", True)

    # Others are prepared after it.
    behind = register(one, dear(name, 1))["handle"]
    until(lambda: is_under_way(one, behind))
    gate.open()
    until(lambda: one.state(behind) == "RUNNING")
    assert one.rows(behind)[-1] == [COUNT - 2]

    # The first stays refused through restarts, until it is unregistered.
    assert one.stop() == 0
    one.start()
    assert one.state(handle) == "ERROR"
    assert one.http.delete(f"/queries/{handle}").status_code == 200
    assert one.http.post("/queries", json={"sql": sql, "handle": handle}).status_code in (201, 202)
    until(lambda: one.state(handle) == "RUNNING")
    assert one.rows(handle) == [[7]]
    assert not noted(one)
    assert one.stop() == 0


@pytest.mark.parametrize("one", [{"LIVENESS_TIMEOUT_MS": 5_000}], indirect=True)
def test_a_condition_that_does_not_end_is_refused_and_holds_no_shard(
    one: Broker, name: str, gate: Gate
) -> None:
    """The worker hangs with it twice, the second time alone; the third does not try."""
    gate.open()
    handle, beside = "A" * 43, "B" * 43
    one.publish(handle, {"sql": f"SELECT id FROM {name} WHERE endless(id) = 7 EMIT CHANGES"})
    one.publish(beside, {"sql": dear(name)})
    until(lambda: len(lives.read(one.data_dir)) == 2, "two workers hung")
    one.await_ready()
    until(lambda: one.state(handle) == "ERROR")
    assert error(one, handle)["code"] == "registration_ends_worker"
    until(lambda: one.state(beside) == "RUNNING", "what came with it is not refused")
    assert query_id(handle) in lives.read(one.data_dir)[0].at  # the reason names the query
    assert one.http.delete(f"/queries/{handle}").status_code == 200
    later = one.register(f"SELECT MAX(id) AS m FROM {name} [RANGE 1 DAY]")
    assert one.rows(later) == [[COUNT - 2]]
    assert one.stop() == 0


@pytest.mark.parametrize(
    "columns", ["id, slow(id) AS s", "id, SUM(slow(id)) AS s", "id"], ids=["select", "aggregate", "having"]
)
def test_others_go_on_while_a_first_answer_is_worked_out(
    one: Broker, name: str, gate: Gate, columns: str
) -> None:
    """The condition is cheap, what stands elsewhere is dear."""
    sql = f"SELECT {columns} FROM {name} [UNBOUNDED]"
    if columns != "id, slow(id) AS s":
        sql += " GROUP BY id" + (" HAVING slow(id) >= 0" if columns == "id" else "")
    handle = register(one, f"{sql} EMIT CHANGES")["handle"]
    until(lambda: error(one, handle).get("code") == "being_prepared")
    other = one.register(f"SELECT MAX(id) AS m FROM {name} [RANGE 1 DAY]")
    one.send(name, rows(10, COUNT))
    until(lambda: one.rows(other) == [[COUNT + 8]])
    assert error(one, handle).get("code") == "being_prepared"
    assert one.http.delete(f"/queries/{handle}").json()["state"] == "GONE"
    assert one.state(handle) is None
    again = register(one, f"{sql} EMIT CHANGES")["handle"]
    until(lambda: error(one, again).get("code") == "being_prepared")
    gate.open()
    until(lambda: one.state(again) == "RUNNING")
    one.send(name, rows(2, COUNT + 10))
    topic = one.names.results if "GROUP BY" in sql else one.names.results_log
    until(lambda: changes(one, again, topic) == list(range(COUNT + 11)))
    assert changes(one, handle, topic) == []
    assert not noted(one)
    assert one.stop() == 0
