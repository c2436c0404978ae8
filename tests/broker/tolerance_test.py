"""What a query allows and how much it weighs: in its text, as options, changed while it runs, as a plan."""

from __future__ import annotations

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker

BASE_MS = 1_700_000_000_000


def said(one: Broker, handle: str) -> tuple[object, object]:
    facts = one.http.get(f"/queries/{handle}").json()
    return facts["tolerance"], facts["weight"]


def test_an_option_counts_before_the_text_while_it_is_set(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    text = f"SELECT id FROM {name} [RANGE 1 HOUR DOWN TO 10 MINUTES] SAMPLE(100 DOWN TO 5)"
    handle = shared.register(f"{text} WITH (max_fp = 0.02, max_fn = 0.1, weight = 3)")
    shared.send(name, [{"id": n, "v": 0.5, "ts": BASE_MS + n} for n in range(50)])
    exact = shared.await_rows(handle, 49)  # nothing is given less
    assert said(shared, handle) == ({"max_fp": 0.02, "max_fn": 0.1}, 3)

    path = f"/queries/{handle}"
    changed = shared.http.patch(path, json={"max_fn": 0, "max_error": 0.5, "weight": 2})
    assert changed.status_code == 200
    assert changed.json()["options"] == {"max_fn": 0, "max_error": 0.5, "weight": 2}
    assert said(shared, handle) == ({"max_fp": 0.02, "max_fn": 0, "max_error": 0.5}, 2)
    entity = {
        one["name"]: one
        for one in shared.http.get(f"/entities/query/{changed.json()['query_id']}").json()["attributes"]
    }
    assert (entity["max_fp"]["value"], entity["max_error"]["value"], entity["weight"]["value"]) == (
        0.02,
        0.5,
        2,
    )
    assert entity["max_fp"]["range"] == {"low": 0, "high": 1, "low_excluded": False}

    shared.http.patch(path, json={"max_fn": None, "max_error": None, "weight": None})
    assert said(shared, handle) == ({"max_fp": 0.02, "max_fn": 0.1}, 3)
    listed = {one["query_id"]: one for one in shared.http.get("/queries").json()["queries"]}
    assert listed[changed.json()["query_id"]]["tolerance"] == {"max_fp": 0.02, "max_fn": 0.1}
    assert shared.rows(handle) == exact

    told = shared.http.get(f"{path}/plan").json()
    assert (told["tolerance"], told["weight"]) == ({"max_fp": 0.02, "max_fn": 0.1}, 3)
    scan = told["steps"][0]["details"]
    assert scan[:2] == [
        "sample 100 percent, down to 5 percent",
        "window NOW - 1 hour to NOW, down to 10 minutes",
    ]

    plan = shared.http.get(f"/plans/{handle}").json()
    assert plan["with"] == {"max_fp": 0.02, "max_fn": 0.1, "weight": 3}
    (node,) = [one for one in plan["nodes"].values() if one["op"] == "scan"]
    assert (node["sample"], node["window"]) == ("100 DOWN TO 5", "RANGE 1 hour DOWN TO 10 minutes")


@pytest.mark.parametrize(
    "options",
    [
        {"max_fp": 1.5},
        {"max_fn": -0.1},
        {"max_fn": "NaN"},
        {"max_error": 0},
        {"max_error": True},
        {"weight": 0},
        {"weight": "Infinity"},
        {"max_fm": 0.1},
    ],
    ids=str,
)
def test_what_is_out_of_range_is_refused(shared: Broker, name: str, options: dict[str, object]) -> None:
    shared.create(stream_sql(name))
    reply = shared.http.post("/queries", json={"sql": f"SELECT id FROM {name}", "options": options})
    assert (reply.status_code, reply.json()["code"]) == (400, "option_refused")
    assert next(iter(options)) in reply.json()["message"]
    assert reply.json()["hint"]
