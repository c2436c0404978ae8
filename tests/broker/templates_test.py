"""Templates with parameters, one by one and in bulk, at every door; they stand through restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

ROWS = [{"id": number, "v": number / 2, "ts": 1_000 + number} for number in range(10)]


@pytest.fixture
def stream(shared: Broker, name: str) -> str:
    """A stream with ten rows, nine of them visible."""
    shared.create(stream_sql(name))
    shared.send(name, ROWS)
    wait_until(lambda: shared.source(name)["rows"] == 9)
    return name


def template(name: str, condition: str, parameters: Any) -> dict[str, Any]:
    return {"template": f"SELECT id FROM {name} WHERE {condition}", "parameters": parameters}


@pytest.mark.parametrize(
    ("condition", "parameters", "ids"),
    [
        ("id > ? AND v < ?", [5, 3.9], [6, 7]),
        ("id = $1 OR id = $2 OR id = $1 + 1", [2, 7], [2, 3, 7]),
        ("ts >= :since", {"since": "1970-01-01 00:00:01.007"}, [7, 8]),
        ("id > -?", [-6], [7, 8]),
        ("(v > 3.5) = ?", [True], [8]),
        ("id IN (1, ?)", [None], [1]),
    ],
)
def test_a_template_stands_by_http(
    shared: Broker, stream: str, condition: str, parameters: Any, ids: list[int]
) -> None:
    said = template(stream, condition, parameters)
    reply = shared.http.post("/queries", json=said)
    assert reply.status_code == 201, reply.text
    handle = reply.json()["handle"]
    assert [row[0] for row in shared.rows(handle)] == ids
    told = shared.http.get(f"/queries/{handle}").json()
    assert (told["sql"], told["parameters"]) == (said["template"], parameters)


def test_a_template_stands_by_the_topic(shared: Broker, stream: str) -> None:
    handles = [new_handle() for _ in range(5)]
    for number, handle in enumerate(handles):
        shared.publish(handle, template(stream, "id = ?", [number]))
    for number, handle in enumerate(handles):
        wait_until(lambda handle=handle: shared.state(handle) == "RUNNING")
        assert shared.rows(handle) == [[number]]


def test_templates_and_texts_stand_by_lines(shared: Broker, stream: str) -> None:
    lines = [template(stream, "id >= ? AND id < ?", [number, number + 2]) for number in range(7)]
    lines += [{"sql": f"SELECT id FROM {stream} WHERE id = {number}"} for number in range(7)]
    lines.insert(3, template(stream, "id >= ?", [1, 2]))
    reply = shared.http.post(
        "/queries",
        content="\n".join(json.dumps(line) for line in lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    answers = [json.loads(line) for line in reply.text.splitlines()]
    refused = answers.pop(3)
    assert [answer["state"] for answer in answers] == ["RUNNING"] * 14
    assert (refused["state"], refused["error"]["code"]) == ("ERROR", "parameters_refused")
    for number in range(7):
        assert shared.rows(answers[number]["handle"]) == [[number], [number + 1]]
        assert shared.rows(answers[7 + number]["handle"]) == [[number]]


@pytest.mark.parametrize(
    ("condition", "parameters", "code", "column"),
    [
        ("id > ? AND v < ?", [5], "parameters_refused", "v < ?"),
        ("id > ?", [5, 6], "parameters_refused", "?"),
        ("id > ?", [[5]], "parameters_refused", "?"),
        ("id > :low", [5], "parameters_refused", ":low"),
        ("id > :low", {"high": 5}, "parameters_refused", ":low"),
        ("id > 0 AND ts > ?", ["yesterday"], "type_mismatch", "?"),
        ("v > ? AND nothing = ?", [5, 6], "unknown_column", "nothing"),
        ("id = ?", ["7"], "type_mismatch", "?"),
    ],
)
def test_wrong_parameters_are_refused_where_they_stand(
    shared: Broker, stream: str, condition: str, parameters: Any, code: str, column: str
) -> None:
    said = template(stream, condition, parameters)
    reply = shared.http.post("/queries", json=said)
    assert (reply.status_code, reply.json()["code"]) == (400, code), reply.text
    expected = said["template"].index(column) + column.index("?" if "?" in column else column[0]) + 1
    assert (reply.json()["line"], reply.json()["column"]) == (1, expected)
    assert reply.json()["hint"]
    handle = new_handle()
    shared.publish(handle, said)
    wait_until(lambda: shared.state(handle) == "ERROR")
    (status,) = shared.status_topic()[query_id(handle)]
    assert status is not None
    assert (status["error"]["code"], status["error"]["column"]) == (code, expected)


@pytest.mark.parametrize(
    "said",
    [
        {"template": "SELECT id FROM s", "sql": "SELECT id FROM s", "parameters": []},
        {"template": "SELECT id FROM s WHERE id = ?"},
        {"template": "SELECT id FROM s WHERE id = ?", "parameters": 5},
        {"template": "", "parameters": []},
        {"template": 7, "parameters": []},
        {"sql": "SELECT id FROM s", "parameters": []},
        {"parameters": [5]},
    ],
)
def test_what_is_neither_a_text_nor_a_template(shared: Broker, said: dict[str, Any]) -> None:
    reply = shared.http.post("/queries", json=said)
    assert (reply.status_code, reply.json()["code"]) == (400, "bad_request")
    handle = new_handle()
    shared.publish(handle, said)
    wait_until(lambda: shared.state(handle) == "ERROR")
    (status,) = shared.status_topic()[query_id(handle)]
    assert status is not None
    assert status["error"]["code"] == "malformed_record"


def test_one_handle_stands_for_one_template_and_its_parameters(shared: Broker, stream: str) -> None:
    handle = new_handle()
    said = template(stream, "id = ?", [3]) | {"handle": handle}
    assert shared.http.post("/queries", json=said).status_code == 201
    assert shared.http.post("/queries", json=said).status_code == 200
    for other in ([4], [3.0], ["3"], [True]):
        reply = shared.http.post("/queries", json=said | {"parameters": other})
        assert reply.status_code in (400, 409), reply.text
    paused = shared.http.patch(f"/queries/{handle}", json={"paused": True})
    assert (paused.status_code, paused.json()["parameters"]) == (200, [3])
    shared.http.patch(f"/queries/{handle}", json={"paused": False})
    assert shared.rows(handle) == [[3]]
    shared.publish(handle, template(stream, "id = ?", [4]))  # the topic is the truth: it replaces
    wait_until(lambda: shared.rows(handle) == [[4]])


def test_a_template_waits_for_its_stream(shared: Broker, name: str) -> None:
    handle = new_handle()
    reply = shared.http.post("/queries", json=template(name, "id = ?", [3]) | {"handle": handle})
    assert (reply.status_code, reply.json()["state"]) == (202, "PENDING")
    shared.create(stream_sql(name))
    shared.send(name, ROWS)
    wait_until(lambda: shared.state(handle) == "RUNNING")
    assert shared.await_rows(handle, 1) == [[3]]


def test_templates_stand_through_a_stop_and_a_kill(kafka: str, tmp_path: Path, name: str) -> None:
    with broker(kafka, tmp_path / "data", f"t{name}") as one:
        one.create(stream_sql(name))
        one.send(name, ROWS)
        lines = [json.dumps(template(name, "id = ?", [number])) for number in range(9)]
        lines += [json.dumps(template(name, "v = :v", {"v": number / 2})) for number in range(9)]
        reply = one.http.post(
            "/queries", content="\n".join(lines), headers={"Content-Type": "application/x-ndjson"}
        )
        handles = [json.loads(line)["handle"] for line in reply.text.splitlines()]
        for handle in handles:
            one.await_rows(handle, 1)
        born = [one.http.get(f"/queries/{handle}").json()["born"] for handle in handles]
        for end in (one.stop, one.kill):
            end()
            one.start()
            for number, handle in enumerate(handles):
                assert one.rows(handle) == [[number % 9]]
                told = one.http.get(f"/queries/{handle}").json()
                assert told["born"] == born[number]
                assert told["parameters"] == ([number] if number < 9 else {"v": (number - 9) / 2})
