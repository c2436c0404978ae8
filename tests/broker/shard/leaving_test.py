"""Queries whose answers take long are removed, altered and paused: others go on meanwhile, the state says it,
and nothing is lost where the worker is killed in between.
"""

from __future__ import annotations

import pytest

from tests.broker.dear_queries import COUNT, Gate, error, folded, kill_worker, others_go_on, rows, until
from tests.broker.running import Broker

pytestmark = pytest.mark.timeout(600)


def dear(name: str) -> str:
    """Its whole answer calls the slow function for each row."""
    return f"SELECT id, slow(id) AS s FROM {name} [RANGE 1 DAY] EMIT CHANGES"


def standing(one: Broker, name: str, gate: Gate) -> str:
    """A dear query that stands, and all of its answer is told; its function is slow from then on."""
    gate.open()
    handle = one.register(dear(name))
    until(lambda: len(folded(one, handle)) == COUNT - 1)
    gate.close()
    return handle


def remove(one: Broker, handle: str) -> None:
    reply = one.http.delete(f"/queries/{handle}")
    assert (reply.status_code, reply.json()["state"]) == (202, "PENDING"), reply.text
    assert reply.json()["error"]["code"] == "being_removed"


def is_leaving(one: Broker, handle: str) -> bool:
    return error(one, handle).get("code") == "being_removed"


def test_others_go_on_while_a_query_is_removed(one: Broker, name: str, gate: Gate) -> None:
    handle = standing(one, name, gate)
    remove(one, handle)
    described = one.http.get(f"/queries/{handle}").json()
    assert (described["state"], described["error"]["code"]) == ("RUNNING", "being_removed")
    others_go_on(one, name, COUNT)
    assert is_leaving(one, handle)
    until(lambda: len(folded(one, handle)) == COUNT + 9)  # it is told of rows until it goes

    # It cannot be changed any more, and may be removed again.
    refused = one.http.patch(f"/queries/{handle}", json={"weight": 2})
    assert (refused.status_code, refused.json()["code"]) == (409, "query_not_running")
    remove(one, handle)
    gate.open()
    until(lambda: one.state(handle) is None)
    until(lambda: not folded(one, handle))
    one.kill()
    one.start()
    assert one.state(handle) is None
    assert not folded(one, handle)
    assert one.stop() == 0


def test_a_kill_in_between_loses_no_removal(one: Broker, name: str, gate: Gate) -> None:
    handle = standing(one, name, gate)
    remove(one, handle)
    kill_worker(one)
    until(lambda: is_leaving(one, handle))
    one.kill()
    one.start()
    until(lambda: is_leaving(one, handle))
    other = one.register(f"SELECT MAX(id) AS m FROM {name} [RANGE 1 DAY]")
    assert one.rows(other) == [[COUNT - 2]]
    assert is_leaving(one, handle)
    gate.open()
    until(lambda: one.state(handle) is None)
    until(lambda: not folded(one, handle))
    assert one.stop() == 0


def test_another_comes_under_its_handle_behind_it(one: Broker, name: str, gate: Gate) -> None:
    handle = standing(one, name, gate)
    remove(one, handle)
    sql = f"SELECT MAX(id) AS m FROM {name} [RANGE 1 DAY] EMIT CHANGES"
    reply = one.http.post("/queries", json={"sql": sql, "handle": handle})
    assert (reply.status_code, reply.json()["state"]) == (202, "PENDING")
    described = one.http.get(f"/queries/{handle}").json()
    assert (described["sql"], described["error"]["code"]) == (sql, "being_removed")
    others_go_on(one, name, COUNT)
    assert len(folded(one, handle)) == COUNT + 9, "what is removed is told of rows"
    gate.open()
    until(lambda: one.state(handle) == "RUNNING")
    assert one.rows(handle) == [[COUNT + 8]]
    until(lambda: [*folded(one, handle).values()] == [{"m": COUNT + 8}])
    assert error(one, handle) == {}

    # It is removed at once, and the same comes again.
    assert one.http.delete(f"/queries/{handle}").json()["state"] == "GONE"
    until(lambda: not folded(one, handle))
    assert one.stop() == 0


def test_what_comes_behind_a_removal_is_given_up(one: Broker, name: str, gate: Gate) -> None:
    handle = standing(one, name, gate)
    remove(one, handle)
    reply = one.http.post("/queries", json={"sql": dear(name), "handle": handle})
    assert (reply.status_code, reply.json()["error"]["code"]) == (202, "being_removed")
    remove(one, handle)
    gate.open()
    until(lambda: one.state(handle) is None)
    until(lambda: not folded(one, handle))
    assert one.stop() == 0


def test_others_go_on_while_a_query_is_altered_or_paused(one: Broker, name: str, gate: Gate) -> None:
    handle = standing(one, name, gate)
    narrow = f"SELECT id, slow(id) AS s FROM {name} [RANGE 100 MILLISECONDS] EMIT CHANGES"
    for change in ({"sql": narrow}, {"paused": True}):
        reply = one.http.patch(f"/queries/{handle}", json=change)
        told = reply.json()
        assert (reply.status_code, told["state"], told["sql"]) == (202, "RUNNING", dear(name)), reply.text
        assert told["error"]["code"] == "being_prepared"
    others_go_on(one, name, COUNT)
    assert error(one, handle)["code"] == "being_prepared"

    # As it was: nothing is to be done.
    as_it_was = {"sql": dear(name), "paused": False}
    assert one.http.patch(f"/queries/{handle}", json=as_it_was).status_code in (200, 202)
    assert one.http.patch(f"/queries/{handle}", json={"paused": True}).status_code == 202
    gate.open()
    until(lambda: one.state(handle) == "PAUSED")
    assert error(one, handle) == {}
    one.send(name, rows(10, COUNT + 10))
    gate.close()
    assert len(folded(one, handle)) == COUNT + 9
    assert one.http.patch(f"/queries/{handle}", json={"sql": narrow}).status_code in (200, 202)
    gate.open()
    assert one.http.patch(f"/queries/{handle}", json={"paused": False}).status_code in (200, 202)
    until(lambda: one.state(handle) == "RUNNING")
    until(lambda: [row["id"] for row in folded(one, handle).values()][-1] == COUNT + 18)
    until(lambda: len(folded(one, handle)) == len(one.rows(handle)))
    assert one.stop() == 0


@pytest.mark.parametrize("change", [{"weight": 2}, {"paused": True}])
def test_a_further_change_builds_on_the_one_that_waits(
    one: Broker, name: str, gate: Gate, change: dict[str, object]
) -> None:
    handle = standing(one, name, gate)
    narrow = f"SELECT id, slow(id) AS s FROM {name} [RANGE 100 MILLISECONDS] EMIT CHANGES"
    for each in ({"sql": narrow}, {"sql": narrow}, change):
        reply = one.http.patch(f"/queries/{handle}", json=each)
        assert reply.status_code == 202, reply.text
        assert (reply.json()["sql"], reply.json()["error"]["code"]) == (dear(name), "being_prepared")
    # One that is refused takes nothing back.
    refused = one.http.patch(f"/queries/{handle}", json={"sql": f"SELECT nothing FROM {name}"})
    assert refused.status_code == 400, refused.text
    kill_worker(one)
    until(lambda: error(one, handle).get("code") == "being_prepared")
    gate.open()
    until(lambda: one.http.get(f"/queries/{handle}").json()["sql"] == narrow)
    assert change.items() <= one.http.get(f"/queries/{handle}").json()["options"].items()
    assert error(one, handle) == {}
    again = one.http.patch(f"/queries/{handle}", json={"sql": narrow})
    assert (again.status_code, again.json()["changes"]) == (200, "continue")
    assert one.stop() == 0


SHORT = {"ANSWER_MS_MAX": 20_000, "PREPARATION_MS_MAX": 20_000}


@pytest.mark.parametrize("one", [SHORT], indirect=True)
def test_work_beside_that_does_not_end_is_refused_and_keeps_nobody_waiting(
    one: Broker, name: str, gate: Gate
) -> None:
    sql = f"SELECT id, endless(id) AS e FROM {name} [RANGE 1 DAY] EMIT CHANGES"
    handle = one.http.post("/queries", json={"sql": sql}).json()["handle"]
    until(lambda: error(one, handle).get("code") == "being_prepared")
    gate.open()
    behind = one.register(dear(name))  # another is prepared meanwhile
    until(lambda: one.state(behind) == "RUNNING")
    until(lambda: one.state(handle) == "ERROR")
    told = error(one, handle)
    assert (told["code"], "preparation_ms_max" in told["hint"]) == ("preparation_too_long", True)
    others_go_on(one, name, COUNT)
    assert one.http.delete(f"/queries/{handle}").json()["state"] == "GONE"


@pytest.mark.slow
@pytest.mark.parametrize("one", [SHORT], indirect=True)
def test_an_answer_that_takes_too_long_is_not_taken_back_and_no_reason_to_pause(
    one: Broker, name: str, gate: Gate
) -> None:
    handle = standing(one, name, gate)
    assert one.http.patch(f"/queries/{handle}", json={"paused": True}).status_code == 202
    until(lambda: error(one, handle).get("code") == "preparation_too_long")
    assert one.state(handle) == "RUNNING"
    others_go_on(one, name, COUNT)
    until(lambda: len(folded(one, handle)) == COUNT + 9)
    remove(one, handle)
    until(lambda: one.state(handle) is None)
    assert len(folded(one, handle)) == COUNT + 9
    assert one.stop() == 0
