"""Result topics that are not as a query needs them: that query ends, its shard and all others go on."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from broker.base.settings import Settings
from broker.shard.outbox import REFUSALS_MAX, Letter, Outbox, Outgoing, Unwritable
from broker.shard.stalls import Stalls
from engine.model.step import BEGINNING, Position
from tests.broker.conftest import stream_sql
from tests.broker.folding import compare, of_query
from tests.broker.running import Broker, broker
from tests.kafka import takes, wait_until
from tests.registry import TestRegistry
from topics.admin import TopicPolicy
from topics.results import Records
from tureen.errors import TureenError

BASE_MS = 1_700_000_000_000
COLUMNS = "id BIGINT, v STRING, ts TIMESTAMP"


@pytest.fixture(scope="module")
def one(
    kafka: str, tmp_path_factory: pytest.TempPathFactory, schema_registry: TestRegistry
) -> Iterator[Broker]:
    """A broker for this file alone: its topics for all queries are made again by hand."""
    directory: Path = tmp_path_factory.mktemp("topics")
    name = f"r{directory.stat().st_ino}"
    settings = {
        "RETRY_MS": 100,
        "TRANSACTION_TIMEOUT_MS": 5_000,
        "SCHEMA_REGISTRY_URL": schema_registry.url,
    }
    with broker(kafka, directory / "data", name, **settings) as made:
        yield made


def send(one: Broker, name: str, count: int, start: int = 0, width: int = 1) -> None:
    """Rows, all of which but the last become visible."""
    one.send(name, [{"id": i, "v": text(i, width), "ts": BASE_MS + i} for i in range(start, start + count)])
    now_ms = BASE_MS + start + count - 2
    wait_until(lambda: one.source(name)["now_ms"] == now_ms, what=f"NOW of {name}")


def text(seed: int, width: int) -> str:
    """Nothing that lz4 makes smaller."""
    return random.Random(seed).randbytes(width // 2 + 1).hex()[:width]


def make(one: Broker, topic: str, partitions: int = 1, **config: object) -> None:
    """As somebody makes it by hand."""
    settings = {name.replace("_", "."): str(value) for name, value in config.items()}
    one.admin.ensure([TopicPolicy(topic, partitions, settings, verified=())])


def alter(one: Broker, topic: str, setting: str, value: object) -> None:
    entry = ConfigEntry(setting, str(value), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": one.bootstrap})
    (future,) = client.incremental_alter_configs([resource]).values()
    future.result(30)
    wait_until(lambda: one.admin.configs([topic])[topic][setting] == str(value))
    if setting == "max.message.bytes":  # what is described is not kept to yet
        size = int(str(value))
        wait_until(
            lambda: not takes(one.bootstrap, topic, size + 500) and takes(one.bootstrap, topic, size - 500),
            what="the node keeps to the topic's new limit",
        )


def make_again(one: Broker, topic: str, partitions: int, **config: object) -> None:
    one.admin.delete_topics([topic])
    wait_until(lambda: topic not in one.admin.topics(), what="the topic is gone")
    make(one, topic, partitions, **config)


def refusal(one: Broker, sql: str) -> dict[str, Any]:
    told: dict[str, Any] = one.http.post("/queries", json={"sql": sql}).json()
    assert told["state"] == "ERROR", told
    error: dict[str, Any] = told["error"]
    return error


def broken(one: Broker, handle: str) -> dict[str, Any]:
    """Why a query has ended."""
    wait_until(lambda: one.state(handle) == "ERROR", what="the query ends")
    error: dict[str, Any] = one.http.get(f"/queries/{handle}").json()["error"]
    assert error["code"] == "changes_broken"
    return error


def written(one: Broker, handle: str) -> list[int]:
    """The ids that a query of rows has told."""
    records = of_query(one.records(one.names.results_log), handle)
    return sorted(json.loads(record.value())["id"] for record in records)


def test_a_topic_keeps_its_kind(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    select = f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v EMIT CHANGES INTO {name}"
    for suffix, first, second in (("a", "upsert", "diff"), ("b", "diff", "upsert")):
        handle = one.register(f"{select}_{suffix} WITH (format = '{first}')")
        one.http.delete(f"/queries/{handle}").raise_for_status()
        told = refusal(one, f"{select}_{suffix} WITH (format = '{second}')")
        assert (told["code"], "cleanup.policy" in told["message"]) == ("topic_policy_mismatch", True)
        again = one.register(f"{select}_{suffix} WITH (format = '{first}')")
        one.http.delete(f"/queries/{again}").raise_for_status()


def test_a_topic_takes_the_largest_record(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    select = f"SELECT id, v FROM {name} EMIT CHANGES INTO {name}"
    topic = one.names.results_into(name)
    make(one, topic, cleanup_policy="delete", max_message_bytes=1_000_000)
    told = refusal(one, select)
    assert told["code"] == "topic_policy_mismatch"
    assert "max.message.bytes=1000000, it must be at least 1001024" in told["message"]
    assert "max.message.bytes=1001024" in told["hint"]
    alter(one, topic, "max.message.bytes", 1_001_024)
    handle = one.register(select)
    send(one, name, 2_000, width=2_500)  # many batches, as large as they get
    one.send(name, [{"id": 2_000, "v": text(0, 999_850), "ts": BASE_MS + 2_000}])
    one.send(name, [{"id": 2_001, "v": "", "ts": BASE_MS + 2_001}])
    wait_until(lambda: len(one.records(topic)) == 2_001, what="the largest is written")
    assert one.state(handle) == "RUNNING"


def test_a_topic_that_takes_no_such_record_any_more_ends_its_queries_alone(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    wide = one.register(f"SELECT id, v FROM {name} EMIT CHANGES INTO {name}")
    slim = one.register(f"SELECT id FROM {name} EMIT CHANGES")
    send(one, name, 10)
    alter(one, one.names.results_into(name), "max.message.bytes", 1_000)
    send(one, name, 10, 10, width=5_000)
    assert "max.message.bytes=1000, it must be at least" in broken(one, wide)["message"]
    wait_until(lambda: written(one, slim) == list(range(19)), what="the other goes on, each row once")
    assert one.readiness()[0] == 200
    records = one.records(one.names.results_into(name))
    assert sorted(json.loads(record.value())["id"] for record in records) == list(range(9))
    assert one.http.delete(f"/queries/{wide}").status_code == 200


def test_a_topic_that_refuses_what_looks_right_is_not_tried_for_ever(one: Broker, name: str) -> None:
    settings = Settings.model_validate({"service_id": name, "retry_ms": 10})
    topics = {kind: f"{name}.{kind}" for kind in ("small", "good")} | {"journal": settings.names.steps}
    make(one, topics["small"], max_message_bytes=1_000)
    make(one, topics["good"])
    make(one, topics["journal"])
    looked_at: list[set[str]] = []

    def look(names: Collection[str]) -> dict[str, int | TureenError]:
        looked_at.append(set(names))
        return dict.fromkeys(names, 1)

    kafka = {"bootstrap.servers": one.bootstrap}
    outbox = Outbox(0, settings, kafka, Stalls(0, settings.retry_ms), look)
    claimed = outbox.take_over(BEGINNING)
    position = Position(claimed.epoch, claimed.sequence + 1)
    outgoing = Outgoing([Letter(topics["journal"], b"step")], last=position)
    for kind, value in (("small", text(0, 2_000)), ("good", "fits")):
        key, text_ = (pa.array([one], pa.large_binary()) for one in (b"key", value.encode()))
        outgoing.tell([Records(topics[kind], key, text_, [], None, 0)])
    with pytest.raises(Unwritable) as refused:
        outbox.commit(outgoing)
    ((topic, reason),) = refused.value.topics.items()
    assert (topic, reason.code) == (topics["small"], "output_refused")
    assert len(looked_at) > REFUSALS_MAX
    outgoing.leave_out({topic})
    outbox.commit(outgoing)
    outbox.close()
    written = {kind: [record.value() for record in one.records(topics[kind])] for kind in topics}
    assert written.pop("journal")[1:] == [b"step"]
    assert written == {"small": [], "good": [b"fits"]}


def test_after_a_restart_likewise(one: Broker, name: str, schema_registry: TestRegistry) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    select = f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v EMIT CHANGES INTO {name}"
    handles = {suffix: one.register(f"{select}_{suffix}") for suffix in ("kind", "size", "good")}
    handles["schema"] = one.register(f"{select}_schema WITH (encoding = 'avro')")
    send(one, name, 10)
    one.kill()
    schema_registry.refused.add(f"{one.names.results_into(name)}_schema-value")
    alter(one, one.names.results_into(f"{name}_kind"), "cleanup.policy", "delete")
    alter(one, one.names.results_into(f"{name}_size"), "max.message.bytes", 1_000)
    one.start()
    send(one, name, 10, 10)
    assert "cleanup.policy=delete, it must be compact" in broken(one, handles["kind"])["message"]
    assert "max.message.bytes=1000" in broken(one, handles["size"])["message"]
    assert "the schema registry refused" in broken(one, handles["schema"])["message"]
    compare(one, handles["good"], one.names.results_into(f"{name}_good"))
    assert one.readiness()[0] == 200


@pytest.mark.parametrize("partitions", [1, 9])
def test_a_topic_made_again_with_other_partitions(one: Broker, name: str, partitions: int) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    handles = [one.register(f"SELECT id FROM {name} WHERE id >= {i} EMIT CHANGES") for i in range(4)]
    send(one, name, 10)
    make_again(one, one.names.results_log, partitions, cleanup_policy="delete")
    send(one, name, 10, 10)
    for handle in handles:
        wait_until(lambda: written(one, handle) == list(range(9, 19)), what="it is written, once")  # noqa: B023
        assert one.state(handle) == "RUNNING"
    one.register(f"SELECT id FROM {name} EMIT CHANGES")  # it is looked at, whether writing failed or not
    told = {(each["topic"], each["code"]) for each in one.readiness()[1]["degraded"]}
    assert (one.names.results_log, "result_topic_made_again") in told


def test_a_topic_made_again_with_another_policy(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    select = f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v EMIT CHANGES INTO {name}"
    handle = one.register(select)
    send(one, name, 10)
    make_again(one, one.names.results_into(name), 4, cleanup_policy="delete")
    assert refusal(one, select)["code"] == "topic_policy_mismatch"  # and so it is known
    send(one, name, 10, 10)
    assert "cleanup.policy=delete" in broken(one, handle)["message"]
    assert one.records(one.names.results_into(name)) == []
    assert one.readiness()[0] == 200
