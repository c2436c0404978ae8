"""Queries whose registration is on its way are listed, described and ended by their handles, and stay ended.

A function that waits holds the shard in a step, so that nothing else is carried out there meanwhile.
"""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import query_id

pytestmark = pytest.mark.timeout(600)

BASE_MS = 1_700_000_000_000
FIRST, SECOND = "A" * 43, "B" * 43

FUNCTIONS = """
import pathlib
import time

import tureen

FOLDER = pathlib.Path(__file__).parent

@tureen.function(arguments=["BIGINT"], returns="BIGINT")
def hold(value):
    if value == 7:
        (FOLDER / "held").touch()
        while not (FOLDER / "open").exists():
            time.sleep(0.01)
    return value
"""


class Held:
    """A broker with a shard that carries nothing out until it is let go."""

    def __init__(self, one: Broker, name: str, folder: Path) -> None:
        self.one, self.name, self._folder = one, name, folder
        one.create(stream_sql(name))
        self.standing = one.register(f"SELECT id FROM {name} WHERE hold(id) >= 7 EMIT CHANGES")
        one.send(name, [{"id": i, "v": i, "ts": BASE_MS + i} for i in (7, 8)])
        self.until_held()

    def until_held(self) -> None:
        wait_until((self._folder / "held").exists, 240.0, "the shard is held")

    def kill_worker(self) -> None:
        (self._folder / "held").unlink()
        before = self.one.children()["broker.worker"]
        before.send_signal(signal.SIGKILL)
        self.until_held()

    def let_go(self) -> None:
        (self._folder / "open").touch()

    def register(self, handle: str) -> tuple[int, dict[str, Any]]:
        sql = f"SELECT id FROM {self.name} WHERE id >= 7 EMIT CHANGES"
        reply = self.one.http.post("/queries", json={"sql": sql, "handle": handle})
        return reply.status_code, reply.json()

    def described(self, handle: str) -> dict[str, Any] | None:
        reply = self.one.http.get(f"/queries/{handle}")
        return reply.json() if reply.status_code == 200 else None

    def listed(self) -> set[str]:
        return {each["query_id"] for each in self.one.http.get("/queries").json()["queries"]}


@pytest.fixture(params=[10_000])
def held(kafka: str, tmp_path: Path, service_id: str, name: str, request: pytest.FixtureRequest) -> Held:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "holding.py").write_text(FUNCTIONS)
    one = Broker(
        kafka,
        tmp_path / "data",
        service_id,
        FUNCTIONS="holding",
        FUNCTIONS_PATH=folder,
        LIVENESS_TIMEOUT_MS=600_000,
        OUTCOME_WAIT_MS=request.param,
    ).start()
    return Held(one, name, folder)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_what_is_on_its_way_is_listed_and_ended(held: Held, killed: bool) -> None:
    one = held.one
    for handle in (FIRST, SECOND):  # the second waits behind the first, at the control process
        status, answer = held.register(handle)
        assert (status, answer["state"]) == (202, "PENDING")
        told = held.described(handle)
        assert told is not None
        assert (told["state"], told["error"]["code"]) == ("PENDING", "being_registered")
        assert query_id(handle) in held.listed()
    first = held.described(FIRST)
    assert first is not None
    assert first["error"]["facts"]["shard"] is not None
    refused = one.http.get(f"/queries/{FIRST}/snapshot")
    assert (refused.status_code, refused.json()["code"]) == (409, "query_not_running")
    again, _ = held.register(FIRST)
    assert again == 202
    other = one.http.post("/queries", json={"sql": f"SELECT v FROM {held.name}", "handle": SECOND})
    assert other.json()["code"] == "handle_in_use"

    for handle in (FIRST, SECOND):
        gone = one.http.delete(f"/queries/{handle}")
        assert (gone.status_code, gone.json()["state"]) == (202, "PENDING")
    if killed:
        held.kill_worker()
    held.let_go()
    wait_until(lambda: held.listed() == {query_id(held.standing)}, 240.0, "they are gone")
    later = one.register(f"SELECT MAX(id) AS m FROM {held.name} [RANGE 1 DAY]")
    assert one.await_rows(later, 1) is not None
    assert held.listed() == {query_id(held.standing), query_id(later)}
    assert held.described(FIRST) is None
    assert held.described(SECOND) is None
    assert one.stop() == 0


@pytest.mark.parametrize("held", [120_000], indirect=True)
def test_a_handle_is_known_before_its_registration_is_answered(held: Held) -> None:
    one = held.one
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(held.register, FIRST)
        wait_until(lambda: held.described(FIRST) is not None, 60.0)
        second = pool.submit(held.register, SECOND)
        wait_until(lambda: held.described(SECOND) is not None, 60.0)
        ended = pool.submit(one.http.delete, f"/queries/{SECOND}")
        wait_until(lambda: one.status_topic().get(query_id(FIRST)) is None, 60.0)
        held.let_go()
        assert first.result()[0] == 201
        assert second.result()[0] in (201, 202)
        assert ended.result().status_code == 200
    wait_until(lambda: held.described(SECOND) is None, 60.0)
    assert one.state(FIRST) == "RUNNING"
    assert one.stop() == 0
