"""What becomes of statements that are written to a broker, by the same table as everywhere."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.broker.running import Broker, unique_name
from tests.definitions import CASES, NAMES, Case
from tests.kafka import wait_until

ASKED = {name: case for name, case in CASES.items() if case.becomes != "waits"}
WAITING = {name: case for name, case in CASES.items() if case.becomes == "waits"}


def named() -> dict[str, str]:
    return {letter: unique_name() for letter in NAMES}


def run(shared: Broker, sql: str) -> tuple[int, dict[str, Any]]:
    reply = shared.http.post("/sources", json={"sql": sql})
    return reply.status_code, reply.json()


def definitions(shared: Broker) -> dict[str, str]:
    """What stands, as the statement that makes it."""
    found = shared.http.get("/sources").json()["sources"] + shared.http.get("/summaries").json()["summaries"]
    return {one["name"]: one["sql"] for one in found}


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED)
def test_what_becomes_of_a_request(shared: Broker, case: Case) -> None:
    names = named()
    for sql in case.stands:
        status, told = run(shared, sql.format(**names))
        assert status == 201, told
    if case.reads is not None:
        shared.register(case.reads.format(**names))
    before = definitions(shared)
    status, told = run(shared, case.statement.format(**names))
    after = definitions(shared)
    about = names[case.about]
    match case.becomes:
        case "create":
            assert (status, about in before, about in after) == (201, False, True)
        case "replace":
            assert (status, about in before) == (201, True)
            assert after[about] != before[about]
        case "same":
            assert (status, told["state"], after) == (200, "RUNNING", before)
        case "drop":
            assert (status, about in before, about in after) == (200, True, False)
        case "absent":
            assert (status, told["code"]) == (400, case.of_step)
        case code:
            assert (told["code"], after) == (code, before)


@pytest.mark.parametrize("case", WAITING.values(), ids=WAITING)
def test_what_becomes_of_a_record(shared: Broker, case: Case) -> None:
    names = named()
    about = names[case.about]
    value = orjson.dumps({"sql": case.statement.format(**names)})
    shared.producer.send(shared.names.sources, value, about.encode())
    shared.producer.flush()
    wait_until(lambda: about in shared.sources(), what="it is told")
    assert shared.source(about)["state"] == "PENDING"
