"""An eager answer that takes long holds up no other query of its shard, and ends no worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

pytestmark = pytest.mark.timeout(600)

BASE_MS = 1_700_000_000_000
COUNT = 3_000
FUNCTIONS = """
import pathlib
import time

import tureen

OPEN = pathlib.Path(__file__).parent / "open"

@tureen.function(arguments=["BIGINT"], returns="BIGINT")
def slow(value):
    if value < {count} and not OPEN.exists():
        time.sleep(0.02)
    return value
"""
TEXTS = (
    "SELECT slow(id) AS x FROM {name} [RANGE 1 DAY]",
    "SELECT MAX(slow(id)) AS x FROM {name} [RANGE 1 DAY]",
    "SELECT v, MAX(slow(id)) AS x FROM {name} [RANGE 1 DAY] GROUP BY v HAVING slow(COUNT(*)) > 0",
    "SELECT DISTINCT slow(id) AS x FROM {name} [RANGE 1 DAY] ORDER BY x",
)


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i, "ts": BASE_MS + i} for i in range(start, start + count)]


def until(condition: Callable[[], object], what: str = "") -> None:
    """However busy the machine is."""
    wait_until(condition, 240.0, what)


def test_others_go_on_beside_an_eager_answer(kafka: str, tmp_path: Path, service_id: str, name: str) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "dear.py").write_text(FUNCTIONS.replace("{count}", str(COUNT)))
    one = Broker(
        kafka,
        tmp_path / "data",
        service_id,
        FUNCTIONS="dear",
        FUNCTIONS_PATH=modules,
        LIVENESS_TIMEOUT_MS=10_000,
    ).start()
    one.create(stream_sql(name))
    count = one.register(f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY]")
    one.send(name, rows(COUNT))
    until(lambda: one.rows(count) == [[COUNT - 1]])
    worker = one.children()["broker.worker"].pid

    # All of them take a minute a step: far longer than a thread may be silent.
    handles = [one.register(sql.format(name=name), maintenance="eager") for sql in TEXTS]
    for place in range(20):
        one.send(name, rows(1, COUNT + place))
        until(lambda place=place: one.rows(count) == [[COUNT + place]])  # type: ignore[misc]
        assert all(one.http.get(f"/queries/{each}").json()["maintenance"] == "lazy" for each in handles)
    described = one.http.get(f"/queries/{handles[0]}").json()
    assert described["notice"].startswith("eager, but answered lazily")
    assert "answered lazily" in one.http.get(f"/queries/{handles[0]}/plan").json()["reason"]
    assert one.children()["broker.worker"].pid == worker

    # Once the function is quick its answer is kept, and is what it was.
    (modules / "open").touch()
    for mode in ("lazy", "eager"):
        assert one.http.patch(f"/queries/{handles[0]}", json={"maintenance": mode}).status_code == 200
    until(lambda: one.http.get(f"/queries/{handles[0]}").json()["maintenance"] == "eager")
    assert one.http.get(f"/queries/{handles[0]}").json()["notice"] is None
    assert one.rows(handles[0]) == [[i] for i in range(COUNT + 19)]
    assert one.rows(handles[1]) == [[COUNT + 18]]
    assert one.stop() == 0
