"""Queries with a preference on a broker: a limit of work marks their answers, without it they are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner

from broker.base.placement import shard_of
from engine.model.step import BEGINNING, Heartbeat
from tests.broker.conftest import stream_sql
from tests.broker.running import SHARDS, Broker
from tests.kafka import wait_until
from topics.journal import RecordsNamed
from topics.journal_reader import read_steps
from tureen.cli import main
from tureen.client import connect

BASE_MS = 1_700_000_000_000
ROWS = 3_000
LIMIT = "preference_work_per_s_max"


def rows(start: int, count: int) -> list[dict[str, Any]]:
    """Half of the values are 0; each of 1 to 9 is rare."""
    ids = [i // 2 % 9 + 1 if i % 2 else 0 for i in range(start, start + count)]
    return [{"id": id_, "v": i / 2, "ts": BASE_MS + i} for i, id_ in enumerate(ids, start)]


def told(broker: Broker, handle: str) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    snapshot = broker.snapshot(handle)
    assert snapshot["approximate"] is bool(snapshot["approximation"])
    return snapshot["rows"], snapshot["approximation"]


def attributes(broker: Broker, entity: str) -> dict[str, Any]:
    """Attributes of an entity, as soon as its shard is back."""
    wait_until(lambda: broker.http.get(f"/entities/{entity}").status_code != 503, what=entity)
    reply = broker.http.get(f"/entities/{entity}")
    assert reply.status_code == 200, reply.text
    return {one["name"]: one["value"] for one in reply.json()["attributes"]}


def limit(broker: Broker, shard: int, units_per_s: int | None) -> None:
    reply = broker.http.patch(f"/entities/{shard}/shard", json={LIMIT: units_per_s})
    assert reply.status_code == 200, reply.text


def metric(broker: Broker, name: str, shard: int) -> float:
    prefix = f'{name}{{shard="{shard}"}} '
    lines = broker.http.get("/metrics").text.splitlines()
    return next(float(line.removeprefix(prefix)) for line in lines if line.startswith(prefix))


def summary(broker: Broker, name: str) -> dict[str, Any]:
    """All that is known of it but for its memory, which grows in doublings."""
    found: dict[str, Any] = broker.http.get(f"/summaries/{name}").json()
    return {key: value for key, value in found.items() if key != "bytes"}


def test_answers_are_marked_while_work_is_limited_and_whole_without_across_a_kill(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    broker = Broker(kafka, tmp_path / "data", service_id, PREFERENCE_WORK_PER_S_MAX=0).start()
    shard = shard_of([name], SHARDS)
    broker.create(stream_sql(name))
    broker.create(f"CREATE SUMMARY {name}_ids ON {name} (id) WITH GRANULARITY 1 SECOND AND COLLAPSE(4, 3)")
    altered = {"sql": f"ALTER SUMMARY {name}_ids SET (theta = 0.6)"}
    assert broker.http.post("/statements", json=altered).status_code == 200
    exact = broker.register(f"SELECT id, v FROM {name} [RANGE 10 SECONDS]")
    wanted = f"SELECT id, v FROM {name} WITH PREFERENCE asc SUMMARY.Estimate.Count(id) WINDOW 10 SECONDS"
    handle = broker.register(wanted)
    broker.send(name, rows(0, ROWS))
    whole = broker.await_rows(exact, ROWS - 1)

    found, (tag,) = told(broker, handle)
    assert found == []
    assert (tag["kind"], tag["units_short"]) == ("preference", len(whole))
    wait_until(lambda: attributes(broker, f"{shard}/shard")["preference_left"] >= len(whole))
    before = attributes(broker, f"{shard}/shard")
    assert (before[LIMIT], before["preference_spent"]) == (0, 0)

    limit(broker, shard, 200)
    wait_until(lambda: len(told(broker, handle)[0]) > 0, what="the first rows")
    limit(broker, shard, 0)
    some, (tag,) = told(broker, handle)
    assert 0 < len(some) < len(whole)
    assert [row for row in whole if row in some] == some
    rare = [row for row in whole if row[0] > 0]
    assert some == [row for row in rare if row in some] or some[: len(rare)] == rare  # rare values came first
    assert tag["units_short"] == len(whole) - len(some)
    assert metric(broker, "tureen_preference_units_spent_total", shard) == len(some)

    described = summary(broker, f"{name}_ids")
    assert described["settings"]["theta"] == 0.6
    headers = broker.http.get(f"/queries/{handle}/snapshot").headers
    assert headers["tureen-approximate"] == "true"
    with connect(broker.url) as client:  # by Arrow, whose metadata has the tags
        (shown,) = client.snapshot(handle).approximation
        assert (shown.kind, shown.units_short) == ("preference", tag["units_short"])
        assert client.status(handle).approximation == (shown,)
        assert not client.status(exact).approximation
        with client.changes(handle) as feed:
            assert next(iter(feed)).approximation == (shown,)
    told_by_command = CliRunner().invoke(main, ["snapshot", handle, "--format", "table", "--url", broker.url])
    assert "approximate: preference of" in told_by_command.output + told_by_command.stderr

    broker.kill()
    broker.start()
    assert summary(broker, f"{name}_ids") == described
    assert told(broker, handle) == (some, [tag])
    assert told(broker, exact) == (whole, [])

    limit(broker, shard, None)
    wait_until(lambda: not told(broker, handle)[1], what="the rest")
    assert told(broker, handle) == (whole, [])
    wait_until(lambda: attributes(broker, f"{shard}/shard")["preference_left"] == 0)
    steps = [
        one.body for one in read_steps({"bootstrap.servers": kafka}, broker.names.steps, shard, BEGINNING)
    ]
    granted = [one.grant for one in steps if isinstance(one, Heartbeat | RecordsNamed) and one.grant]
    assert sum(granted) >= len(whole)
    assert attributes(broker, f"{shard}/summary/{name}_ids")["rows"] == len(whole)


def test_query_with_a_preference_has_settable_options_and_a_plan(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.create(f"CREATE SUMMARY {name}_ids ON {name} (id) WITH GRANULARITY 1 SECOND AND COLLAPSE(4, 3)")
    text = f"SELECT id FROM {name} WITH PREFERENCE desc SUMMARY.Estimate.Count(id) FADE FACTOR 0.5"
    first, second = shared.register(text), shared.register(text)
    shared.send(name, rows(0, 100))
    shared.await_rows(first, 99)
    assert shared.http.patch(f"/entities/query/{second}", json={"fade": 0.25}).status_code == 200
    assert attributes(shared, f"query/{second}")["fade"] == 0.25
    assert attributes(shared, f"query/{first}")["fade"] == 0.5
    refused = shared.http.patch(f"/entities/query/{second}", json={"fade": 0})
    assert (refused.status_code, refused.json()["code"]) == (400, "option_refused")
    plan = shared.http.get(f"/queries/{first}/plan").json()["preference"]
    assert (plan["order"], plan["fade"], plan["members"], plan["is_whole"]) == ("desc", 0.5, 1, True)
    assert attributes(shared, f"{shard_of([name], SHARDS)}/{plan['group']}")["visited"] == 99
