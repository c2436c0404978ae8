"""A running broker in which the work of some queries fails: these end alone, through a kill as well.

The worker is started with operators that raise in the work for queries whose text has a certain constant.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.folding import folded, line, of_query
from tests.broker.following import Feed
from tests.broker.running import FIRST_S, Broker, unique_name
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
COLUMNS = "id BIGINT, v BIGINT, ts TIMESTAMP"
DEFECT = """
import os
import sys
import traceback


def strike():
    from weakref import WeakSet

    import engine.queries.eager_answers as eager_answers
    from engine.dataflow.graph import Graph
    from engine.dataflow.operators.group import GroupNode
    from engine.views.set_view import SetView

    failing = WeakSet()
    add, changed, bring, evaluated = Graph.add, GroupNode._changed, eager_answers.brought, SetView.evaluated

    def adding(graph, standing, *args, **more):
        add(graph, standing, *args, **more)
        if "4711" in standing.registration.sql:
            keys = graph._members[standing.query_id].nodes
            failing.update(graph.nodes.by_key[key] for key in keys)

    def changing(node, turn):
        if node in failing:
            raise IndexError("injected")
        return changed(node, turn)

    def bringing(query, at, *more):
        if "4712" in query.registration.sql and at[query.sources[0]].end:
            raise KeyError("the value of a row")
        return bring(query, at, *more)

    def evaluating(view, query, *more):
        if "4713" in query.registration.sql:
            raise ZeroDivisionError
        return evaluated(view, query, *more)

    Graph.add, GroupNode._changed, eager_answers.brought = adding, changing, bringing
    SetView.evaluated = evaluating


if "broker.worker" in sys.orig_argv:
    try:
        strike()
    except Exception:
        traceback.print_exc()
        os._exit(1)  # else Python goes on without the defects
"""


@pytest.fixture
def faulty(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Not started yet."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(DEFECT)
    paths = [str(tmp_path / "site"), str(Path(__file__).parents[2])]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    return Broker(kafka, tmp_path / "data", f"t{new_handle()[:12]}")


def groups(name: str, constant: int) -> str:
    return f"SELECT v, COUNT(*) AS n FROM {name} WHERE id <> {constant} GROUP BY v"


def rows(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": i, "v": i % 3, "ts": BASE_MS + i} for i in range(first, first + count)]


def error_of(one: Broker, handle: str) -> dict[str, Any]:
    """Why it ended, as every list tells it."""
    wait_until(lambda: one.state(handle) == "ERROR", FIRST_S, "it ends")
    error: dict[str, Any] = one.http.get(f"/queries/{handle}").json()["error"]
    assert error["code"] == "internal_error"
    return error


def test_queries_whose_work_fails_end_alone_and_stay_so(
    faulty: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, name = faulty.start(), unique_name()
    one.create(stream_sql(name, columns=COLUMNS))
    form = " EMIT CHANGES WITH (format = 'diff')"
    good = one.register(groups(name, 1) + form)
    seen = one.register(groups(name, 2))
    written = one.register(groups(name, 4711) + form)
    read = one.register(groups(name, 47110))
    kept = one.http.post(
        "/queries",
        json={"sql": f"SELECT id FROM {name} WHERE v < 4712", "options": {"maintenance": "eager"}},
    ).json()["handle"]
    asked = one.register(f"SELECT v FROM {name} WHERE id < 4713 ORDER BY v LIMIT 1")
    feed, other = Feed(one, read).begin(), Feed(one, seen).begin()
    assert feed.line() is not None
    assert other.line() is not None
    one.send(name, rows(0, 60))

    errors = {handle: error_of(one, handle) for handle in (written, read, kept)}
    lines = []
    while (told := feed.line()) is not None:
        lines.append(told)
    assert lines[-1]["type"] == "end"
    assert lines[-1]["error"]["code"] == "internal_error"
    reply = one.http.get(f"/queries/{asked}/snapshot")
    assert (reply.status_code, reply.json()["code"]) == (500, "internal_error")
    errors[asked] = error_of(one, asked)

    logged = [each for each in one.events() if each.get("event") == "query_failed"]
    for handle, error in errors.items():
        (mine,) = (each for each in logged if query_id(handle) in each["queries"])
        assert mine["incident"] in error["message"]
        assert " in " in mine["trace"]
    log = one.log.read_text()
    assert "the value of a row" not in log
    assert not any(handle in log for handle in (good, seen, *errors))

    def is_published() -> bool:
        status = one.status_topic()
        return all((status[query_id(handle)][-1] or {})["state"] == "ERROR" for handle in errors)

    wait_until(is_published, what="the status topic has it")

    def is_told(last: int) -> bool:
        expected = Counter(row["v"] for row in rows(0, last) if row["id"] != 1)
        told = folded(of_query(one.records(one.names.results_log), good), "diff")
        return +told == Counter(line(each) for each in expected.items())

    wait_until(lambda: is_told(59), FIRST_S, "the others are told all")
    assert one.readiness()[0] == 200
    one.kill()
    one.start()
    one.send(name, rows(60, 20))
    wait_until(lambda: is_told(79), FIRST_S, "the others go on")
    assert {handle: error_of(one, handle) for handle in errors} == errors
    assert one.readiness()[0] == 200

    one.stop()
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    one.start()
    assert {handle: error_of(one, handle) for handle in errors} == errors
    again = one.register(groups(name, 4711) + form, written)
    assert one.state(again) == "RUNNING"
    wait_until(lambda: sum(n for _, n in one.rows(again)) == 79, what="it answers again")
