"""Followed queries whose state takes long to be made after a restart: others go on meanwhile, the state says
it, and what they are told lacks nothing and has nothing twice, wherever the broker is killed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import pytest

from tests.broker.dear_queries import COUNT, Gate, error, folded, kill_worker, others_go_on, rows, until
from tests.broker.running import Broker
from tureen.protocol import query_id

pytestmark = pytest.mark.timeout(600)


def dear(name: str, form: str = "diff") -> str:
    """The state of its operators calls the slow function for each row."""
    columns = "id % 3 AS k, COUNT(*) AS n, SUM(slow(id)) AS s"
    emit = f"EMIT CHANGES WITH (format = '{form}')"
    return f"SELECT {columns} FROM {name} [RANGE 1 DAY] GROUP BY id % 3 {emit}"


def answer(count: int) -> Counter[str]:
    """Its answer over so many rows."""
    groups = [range(k, count, 3) for k in range(3)]
    return Counter(str({"k": k, "n": len(ids), "s": sum(ids)}) for k, ids in enumerate(groups))


def told(one: Broker, handle: str) -> list[tuple[str, str, int]]:
    """What its result topic was told: position, row, weight, in order."""
    key, found = query_id(handle).encode(), []
    for record in one.records(one.names.results_log):
        if key in record.key():
            value: dict[str, Any] = orjson.loads(record.value())
            position = dict(record.headers())["tureen-position"].decode()
            found.append((position, str(value["row"]), value["weight"]))
    return found


def sum_of(changes: list[tuple[str, str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, row, weight in changes:
        found[row] += weight
    assert all(count >= 0 for count in found.values())
    return +found


def standing(one: Broker, name: str, gate: Gate, form: str = "diff") -> str:
    """A dear query that stands, and all of its answer is told; its function is slow from then on."""
    gate.open()
    handle = one.register(dear(name, form))
    if form == "diff":
        until(lambda: sum_of(told(one, handle)) == answer(COUNT - 1))
    else:
        until(lambda: len(folded(one, handle)) == 3)
    gate.close()
    return handle


def is_being_prepared(one: Broker, handle: str) -> bool:
    return one.state(handle) == "RUNNING" and error(one, handle).get("code") == "being_prepared"


def restart(one: Broker, handle: str) -> None:
    one.kill()
    one.start()
    until(lambda: is_being_prepared(one, handle))


def test_others_go_on_while_state_is_made_after_a_restart(one: Broker, name: str, gate: Gate) -> None:
    handle = standing(one, name, gate)
    before = told(one, handle)
    restart(one, handle)
    described = one.http.get(f"/queries/{handle}").json()
    assert 0 <= described["error"]["facts"]["progress"] < 1
    others_go_on(one, name, COUNT)

    # Nothing of it is told yet, and whatever ends the broker meanwhile changes nothing of that.
    kill_worker(one)
    until(lambda: is_being_prepared(one, handle))
    others_go_on(one, name, COUNT + 10)
    assert one.stop() == 0
    one.start()
    until(lambda: is_being_prepared(one, handle))
    others_go_on(one, name, COUNT + 20)
    assert is_being_prepared(one, handle)
    assert told(one, handle) == before

    # Then it is told what it would have been: each change at the step in which it was.
    gate.open()
    until(lambda: error(one, handle) == {})
    until(lambda: sum_of(told(one, handle)) == answer(COUNT + 29))
    after = told(one, handle)
    assert after[: len(before)] == before
    sequences = [int(position.split("-")[1]) for position, _, _ in after]
    assert sequences == sorted(sequences)
    assert len({*sequences}) > 3
    one.send(name, rows(5, COUNT + 30))
    until(lambda: sum_of(told(one, handle)) == answer(COUNT + 34))
    one.kill()
    one.start()
    until(lambda: error(one, handle) == {})
    one.send(name, rows(5, COUNT + 35))
    until(lambda: sum_of(told(one, handle)) == answer(COUNT + 39))
    assert one.stop() == 0


def test_one_that_is_set_apart_is_removed_or_changed_once_it_rejoined(
    one: Broker, name: str, gate: Gate
) -> None:
    handle, other = standing(one, name, gate, "upsert"), standing(one, name, gate, "upsert")
    restart(one, handle)
    removed = one.http.delete(f"/queries/{handle}")
    assert (removed.status_code, removed.json()["error"]["code"]) == (202, "being_removed"), removed.text
    again = one.http.post("/queries", json={"sql": dear(name, "upsert"), "handle": handle})
    assert (again.status_code, again.json()["state"]) == (202, "PENDING"), again.text
    paused = one.http.patch(f"/queries/{other}", json={"paused": True})
    assert (paused.status_code, paused.json()["error"]["code"]) == (202, "being_prepared"), paused.text
    others_go_on(one, name, COUNT)
    gone = one.http.delete(f"/queries/{handle}")
    assert gone.status_code == 202, gone.text
    gate.open()
    until(lambda: one.state(handle) is None)
    until(lambda: not folded(one, handle))
    until(lambda: one.state(other) == "PAUSED")
    counts = [row["n"] for row in folded(one, other).values()]
    assert sum(counts) == COUNT + 9
    assert one.stop() == 0


SHORT = {"ANSWER_MS_MAX": 20_000, "PREPARATION_MS_MAX": 20_000}


@pytest.mark.slow
@pytest.mark.parametrize("one", [SHORT], indirect=True)
def test_one_whose_state_takes_too_long_ends(one: Broker, name: str, gate: Gate) -> None:
    handle = standing(one, name, gate)
    restart(one, handle)
    others_go_on(one, name, COUNT)
    until(lambda: one.state(handle) == "ERROR")
    ended = error(one, handle)
    assert (ended["code"], "preparation_ms_max" in ended["hint"]) == ("changes_broken", True)
    assert "took longer to be made" in ended["message"]
    others_go_on(one, name, COUNT + 10)
    one.kill()
    one.start()
    assert error(one, handle) == ended
    assert one.http.delete(f"/queries/{handle}").json()["state"] == "GONE"
    assert one.stop() == 0
