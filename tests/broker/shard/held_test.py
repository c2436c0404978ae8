"""A worker that ends again and again by the same cause comes up held, says why, and there is a way out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.base.placement import shard_of
from broker.runtime import lives
from broker.runtime.lives import LifeEnd
from tests.broker.conftest import stream_sql
from tests.broker.running import SHARDS, Broker
from tests.kafka import wait_until
from tureen.commands.pause import resume
from tureen.errors import MIB
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000
GIB = 1024 * MIB

ENDLESS = """
import tureen

@tureen.function(arguments=["BIGINT"], returns="BIGINT")
def endless(value):
    while value == 7:
        pass
    return value
"""


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i, "ts": BASE_MS + i} for i in range(start, start + count)]


def held(one: Broker) -> list[str]:
    """The codes of what stops progress."""
    return [reason["code"] for reason in one.readiness()[1].get("reasons", ())]


@pytest.mark.slow
def test_a_shard_that_hangs_again_and_again_is_held_until_its_query_is_unregistered(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "loops.py").write_text(ENDLESS)
    one = Broker(
        kafka,
        tmp_path / "data",
        service_id,
        FUNCTIONS="loops",
        FUNCTIONS_PATH=tmp_path / "modules",
        LIVENESS_TIMEOUT_MS=4_000,
    ).start()
    one.create(stream_sql(name))
    good = one.register(f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY]")
    bad = one.register(f"SELECT id FROM {name} WHERE endless(id) = 7")
    one.send(name, rows(5))
    wait_until(lambda: one.rows(good) == [[4]])
    one.send(name, rows(20, 5))
    number = shard_of([name], SHARDS)
    wait_until(lambda: "shard_held" in held(one), 240.0, "the shard is held")
    causes = [end.cause for end in lives.read(one.data_dir)]
    assert causes == [f"shard-{number}"] * lives.REPEATED
    assert "endless" in one.log.read_text()  # the stacks say where

    # Everything is listed, nothing is answered, new queries wait.
    (reason,) = [each for each in one.readiness()[1]["reasons"] if each["code"] == "shard_held"]
    assert reason["shards"] == [number]
    assert "unregister" in reason["hint"]
    wait_until(lambda: one.state(good) == "RUNNING")
    refused = one.http.get(f"/queries/{good}/snapshot")
    assert (refused.status_code, refused.json()["code"]) == (503, "shard_held")
    later = one.http.post("/queries", json={"sql": f"SELECT MAX(id) AS m FROM {name} [RANGE 1 DAY]"})
    assert (later.status_code, later.json()["error"]["code"]) == (202, "shard_held"), later.text

    # The way out.
    assert one.http.delete(f"/queries/{bad}").status_code == 200
    one.await_ready()
    wait_until(lambda: one.rows(good) == [[24]])
    wait_until(lambda: one.state(later.json()["handle"]) == "RUNNING")  # it is said again
    wait_until(lambda: one.rows(later.json()["handle"]) == [[23]])
    assert one.state(bad) is None
    one.kill()
    one.start()  # the removal was a step like any other
    assert one.rows(good) == [[24]]
    assert one.state(bad) is None
    wait_until(lambda: not (one.data_dir / "shards" / f"{number}.removals.json").exists())
    assert one.stop() == 0


def wide(first: int, count: int) -> list[dict[str, object]]:
    """Rows of about a quarter of a KiB, no two texts alike."""
    return [{"id": i, "v": f"{i:09d}" * 30, "ts": BASE_MS + i} for i in range(first, first + count)]


@pytest.mark.slow
def test_a_store_that_does_not_fit_is_held_and_comes_back_without_what_was_removed(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    settings = {"MEMORY_BUDGET_BYTES": 4 * GIB, "SPILL_BYTES_MAX": 0}
    one = Broker(kafka, tmp_path / "data", service_id, **settings).start()
    columns = "id BIGINT, v STRING, ts TIMESTAMP"
    for stream in (name, f"{name}b"):
        one.create(stream_sql(stream, columns=columns, options=", partitions = 1, retain = '1 second'"))
    wide_window = one.register(f"SELECT COUNT(v) AS n FROM {name} [RANGE 1 DAY]")
    narrow = one.register(f"SELECT id FROM {name} [RANGE 5 MILLISECONDS] WHERE v <> ''")
    small = one.register(f"SELECT COUNT(*) AS n FROM {name}b [RANGE 1 DAY]")
    count = 700_000
    for first in range(0, count, 20_000):
        one.send(name, wide(first, 20_000))
    one.send(f"{name}b", wide(0, 100))
    wait_until(lambda: one.rows(wide_window) == [[count - 1]], 120.0)
    wait_until(lambda: one.rows(small) == [[99]])
    before = one.rows(narrow)
    assert one.stop() == 0

    one.settings["MEMORY_BUDGET_BYTES"] = str(340 * MIB)
    one.launch()
    wait_until(lambda: "shard_held" in held(one), 90.0, "a shard is held")
    listed = one.http.get("/queries").json()["queries"]
    assert {each["query_id"] for each in listed} >= {query_id(each) for each in (wide_window, narrow, small)}
    assert {each["name"] for each in one.http.get("/sources").json()["sources"]} == {name, f"{name}b"}
    if shard_of([name], SHARDS) != shard_of([f"{name}b"], SHARDS):
        assert one.rows(small) == [[99]]  # of another shard

    # As it is it does not fit, however often it tries.
    told = CliRunner().invoke(resume, ["--held", "--url", one.url])
    assert (told.exit_code, "trying again" in told.stderr) == (0, True), told.output
    wait_until(lambda: one.http.get("/queries").status_code == 200 and "shard_held" in held(one))

    # Without the query whose window holds the rows it does, and the others are answered as before.
    assert one.http.delete(f"/queries/{wide_window}").status_code == 200
    one.await_ready()
    assert one.rows(narrow) == before
    assert one.state(wide_window) is None
    assert one.source(name)["rows"] < count
    one.stop()
    one.settings["MEMORY_BUDGET_BYTES"] = str(4 * GIB)
    one.start()
    assert one.rows(narrow) == before
    assert one.rows(small) == [[99]]
    assert one.stop() == 0


def test_a_loop_of_kills_by_memory_brings_the_worker_up_held_until_it_is_told_to_try(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, MEMORY_BUDGET_BYTES=GIB).start()
    one.create(stream_sql(name))
    handle = one.register(f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY]")
    one.send(name, rows(100))
    wait_until(lambda: one.rows(handle) == [[99]])
    one.kill()
    for _ in range(lives.REPEATED):
        lives.note(one.data_dir, LifeEnd(time.time(), "memory", GIB))
    one.launch()
    wait_until(lambda: "shard_held" in held(one), what="it comes up held")
    (reason,) = [each for each in one.readiness()[1]["reasons"] if each["code"] == "shard_held"]
    assert "TUREEN_MEMORY_BUDGET_BYTES" in reason["hint"]
    assert one.state(handle) == "RUNNING"
    assert one.http.get(f"/queries/{handle}/snapshot").json()["code"] == "shard_held"
    assert one.http.post("/retry").json() == {"shards": reason["shards"]}
    one.await_ready()
    assert one.rows(handle) == [[99]]
    assert lives.read(one.data_dir) == []
    assert one.stop() == 0
