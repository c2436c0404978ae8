"""CREATE ... FROM TOPIC: inferred once, carried out as the full statement, told; and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from click.testing import CliRunner

import tureen
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.registry import TestRegistry
from tests.topics.formats.avro import encoded
from topics.registry import wire_prefix
from tureen.commands.infer import infer
from tureen.commands.sql import sql
from tureen.errors import TureenError

BASE_MS = 1_700_000_000_000
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": at, "v": at / 2, "ts": BASE_MS + at * 1_000} for at in range(count)]


def make(shared: Broker, sql: str, status: int = 201) -> dict[str, Any]:
    reply = shared.http.post("/statements", json={"sql": sql})
    assert reply.status_code == status, reply.text
    told: dict[str, Any] = reply.json()
    return told


def published(shared: Broker, name: str) -> list[str]:
    """The statements of a source that the topic of sources has."""
    found = [one for one in shared.records(shared.names.sources) if one.key() == name.encode()]
    return [json.loads(one.value())["sql"] for one in found if one.value() is not None]


def test_a_stream_is_inferred_once_and_published_as_its_full_statement(shared: Broker, name: str) -> None:
    topic = f"{name}-in"
    shared.admin.ensure_source_topic(topic)
    shared.send(topic, [*rows(30), {"id": 30, "v": 0.5, "ts": BASE_MS + 30_000, "mixed": "x"}, {"mixed": 1}])
    asked = f"CREATE STREAM {name} FROM TOPIC '{topic}' WITH (timestamp = 'ts', idle_timeout = '1 hour')"
    dry = CliRunner().invoke(sql, ["--dry-run", asked, "--url", shared.url])
    assert (dry.exit_code, name in shared.sources()) == (0, False), dry.output
    told = make(shared, asked)
    assert f"{told['sql']};" in dry.output
    assert "CREATE STREAM" in told["sql"]
    assert "id BIGINT" in told["sql"]
    assert {"member_left_out", "records_unreadable"} <= {one["code"] for one in told["warnings"]}
    assert (told["state"], told["topic"], told["topic_existed"]) == ("RUNNING", topic, True)
    statement = parse(told["sql"], {}, Limits())
    assert isinstance(statement, CreateStream)
    assert (statement.stream.topic, statement.stream.idle_timeout_ms) == (topic, 3_600_000)
    assert published(shared, name) == [told["sql"]]
    assert shared.source(name)["sql"] == told["sql"]
    handle = shared.register(f"SELECT COUNT(*) AS n, SUM(v) AS v FROM {name} [RANGE 1 DAY]")
    shared.await_read(name)
    assert shared.rows(handle) == [[30, sum(at / 2 for at in range(30))]]

    again = make(shared, asked, 200)
    assert again["sql"] == told["sql"]
    skipped = make(shared, f"CREATE STREAM IF NOT EXISTS {name} FROM TOPIC 'no-such-topic'", 200)
    assert (skipped["skipped"], skipped["differs"]) == (True, True)
    skipped = make(shared, f"CREATE STREAM IF NOT EXISTS {name} FROM TOPIC '{topic}'", 200)
    assert (skipped["skipped"], skipped["differs"]) == (True, False)
    assert make(shared, f"CREATE STREAM {name} FROM TOPIC '{topic}'", 409)["code"] == "source_conflict"
    assert len(published(shared, name)) == 1


def test_a_table_in_avro_has_the_types_of_its_schema(
    shared: Broker, name: str, schema_registry: TestRegistry
) -> None:
    shared.admin.ensure_source_topic(name, table=True)
    prefix = wire_prefix(schema_registry.put(f"{name}-value", json.dumps(ORDER)))
    at = datetime.fromtimestamp(BASE_MS / 1_000, UTC)
    values = [prefix + encoded(ORDER, {"id": n, "total": Decimal("1.50"), "ts": at}) for n in range(3)]
    for n, value in enumerate(values):
        shared.producer.send(name, value, str(n).encode())
    shared.producer.flush()
    with tureen.connect(shared.url) as client:
        made = client.create(f"CREATE TABLE {name} FROM TOPIC '{name}'")
    assert made.sql is not None
    assert "total DECIMAL(12, 2)" in made.sql
    assert "format = 'avro'" in made.sql
    handle = shared.register(f"SELECT id, total FROM {name} ORDER BY id")
    assert shared.await_rows(handle, 3) == [[n, "1.50"] for n in range(3)]


def test_what_cannot_be_inferred_is_refused_with_the_reason(shared: Broker, name: str) -> None:
    for kind in ("empty", "mixed", "cut"):
        shared.admin.ensure_source_topic(f"{name}-{kind}")
    shared.send(f"{name}-mixed", [{"id": at} if at % 2 else {"id": "x", "v": at} for at in range(40)])
    shared.send(f"{name}-mixed", [b"no object"] * 4)
    shared.send(f"{name}-cut", [b'{"id": '] * 30)
    for topic, code, message in (
        ("no-such-topic-at-all", "topic_missing", "does not exist"),
        (f"{name}-emptty", "topic_missing", "does not exist"),
        (f"{name}-empty", "not_inferred", "no records to look at"),
        (f"{name}-mixed", "not_inferred", "mixed, and 4 of 44 would give no row"),
        (f"{name}-cut", "not_inferred", "none of the records has a member"),
        (shared.names.steps, "not_supported", "topic"),
    ):
        told = make(shared, f"CREATE STREAM {name} FROM TOPIC '{topic}'", 400)
        assert (told["code"], message in told["message"]) == (code, True), told
        if topic.endswith("emptty"):
            assert told["hint"] == f"there is a topic {name}-empty"
    told = make(shared, f"CREATE TABLE {name} FROM TOPIC '{name}-mixed'", 400)
    assert told["code"] == "not_inferred"
    told = make(shared, f"CREATE STREAM {name} FROM TOPIC '{name}-mixed' WITH (timestamp = 'v')", 400)
    assert (told["code"], "is no instant in 20 of 40" in told["message"]) == ("type_mismatch", True)
    assert name not in shared.sources()
    with tureen.connect(shared.url) as client, pytest.raises(TureenError, match="no records to look at"):
        client.infer(sql=f"CREATE STREAM {name} FROM TOPIC '{name}-empty'")


def test_a_published_statement_is_not_inferred(shared: Broker, name: str) -> None:
    shared.admin.ensure_source_topic(f"{name}-in")
    shared.send(f"{name}-in", rows(30))
    value = json.dumps({"sql": f"CREATE STREAM {name} FROM TOPIC '{name}-in'"})
    shared.producer.send(shared.names.sources, value.encode(), name.encode())
    shared.create(stream_sql(f"{name}_behind"))
    assert name not in shared.sources()


def test_the_command_tells_the_statement(shared: Broker, name: str) -> None:
    shared.admin.ensure_source_topic(name)
    shared.send(name, rows(30))
    proposed = CliRunner().invoke(infer, [name, "--url", shared.url])
    made = CliRunner().invoke(sql, [f"CREATE STREAM {name} FROM TOPIC '{name}'", "--url", shared.url])
    assert made.exit_code == 0, made.output
    text = proposed.output[: proposed.output.index(";") + 1]
    assert text in made.output
    assert f"stream {name} is ready" in made.output
