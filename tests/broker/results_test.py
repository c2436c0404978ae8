"""Changes of answers on result topics: folded, they are the answer; shared, agreed upon, taken back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.broker.conftest import stream_sql
from tests.broker.folding import at_ms, compare, compare_all, folded, line, occasion_of, of_query, position_of
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tests.registry import TestRegistry, registry
from topics.admin import TopicPolicy
from topics.results import partition_of
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i * 7 % 10 / 2, "ts": BASE_MS + i * 10} for i in range(start, start + count)]


def output(one: Broker, handle: str) -> dict[str, Any]:
    told: dict[str, Any] = one.http.get(f"/queries/{handle}").json()
    assert told["state"] in ("RUNNING", "PAUSED"), told
    found: dict[str, Any] = told["output"]
    return found


def send(one: Broker, name: str, count: int, start: int = 0) -> None:
    """Rows, all of which but the last become visible."""
    one.send(name, rows(count, start))
    now_ms = BASE_MS + (start + count - 1) * 10 - 1
    wait_until(lambda: one.source(name)["now_ms"] == now_ms, what=f"NOW of {name}")


ANSWERS = [
    "SELECT v, COUNT(*) AS n, SUM(id) AS total FROM {s} GROUP BY v",
    "SELECT COUNT(*) AS n, MAX(v) AS top FROM {s} [RANGE 300 MILLISECONDS]",
    "SELECT id, v FROM {s} [RANGE 300 MILLISECONDS] WHERE v > 2",
    "SELECT v FROM {s} [ROWS 20]",
    "SELECT DISTINCT v FROM {s} [RANGE 50 MILLISECONDS]",
    "SELECT v, MAX(window_end) AS last, COUNT(*) AS n FROM HOP({s}, 200 ms, 100 ms) GROUP BY v",
    "SELECT a.id, b.id AS b FROM {s} [RANGE 200 ms] AS a JOIN {s} [ROWS 9] AS b ON a.v = b.v AND a.id < b.id",
    "SELECT s.id, t.label FROM {s} [RANGE 1 SECOND] AS s LEFT JOIN {t} AS t ON s.v = t.v",
    "SELECT t.label, COUNT(*) AS n FROM {s} AS s JOIN {t} AS t ON s.v = t.v GROUP BY t.label",
    "SELECT * FROM {t} WHERE label <> 'none'",
    "SELECT id, v FROM {s} [RANGE 1 SECOND] ORDER BY v DESC, id LIMIT 3",
]


def test_a_folded_topic_is_the_answer(shared: Broker, name: str) -> None:
    table = f"{name}_t"
    shared.create(stream_sql(name))
    shared.create(
        f"CREATE TABLE {table} (v DOUBLE PRIMARY KEY, label STRING, ts TIMESTAMP) WITH (timestamp = 'ts')"
    )
    versions = [
        (v / 2, label, BASE_MS + at)
        for at, v, label in [
            (0, 1, "one"),
            (5, 2, "two"),
            (400, 1, "ONE"),
            (700, 2, None),
            (1_500, 3, "three"),
        ]
    ]
    for v, label, ts in versions[:3]:
        put(shared, table, v, None if label is None else {"label": label, "ts": ts}, ts)
    send(shared, name, 60)
    handles = {sql: shared.register(f"{sql.format(s=name, t=table)} EMIT CHANGES") for sql in ANSWERS}
    # Where its sources are at home, a query begins with its answer.
    records = shared.records(shared.names.results)
    begun = [record for sql in ANSWERS[:6] for record in of_query(records, handles[sql])]
    assert {occasion_of(record) for record in begun} == {"snapshot"}
    # Joins have rows once both their sources were read so far.
    wait_until(
        lambda: all(compare_all(shared, handles.values(), shared.names.results).values()),
        what="an answer with rows of each query",
    )
    for v, label, ts in versions[3:]:
        put(shared, table, v, None if label is None else {"label": label, "ts": ts}, ts)
    for first in (60, 90, 150):
        send(shared, name, 30, first)
        compare_all(shared, handles.values(), shared.names.results)
    records = shared.records(shared.names.results)
    for sql, handle in handles.items():
        told = output(shared, handle)
        assert (told["topic"], told["format"], told["operator"]) == (
            shared.names.results,
            "upsert",
            "changes",
        ), sql
        found = of_query(records, handle)
        assert {record.partition() for record in found} == {partition_of(query_id(handle), 4)}
        places = {(record.key(), at_ms(record), position_of(record)) for record in found}
        assert len(places) == len(found), sql
        assert shared.http.delete(f"/queries/{handle}").status_code == 200

    def taken_back() -> bool:
        records = shared.records(shared.names.results)
        return not any(folded(of_query(records, handle), "upsert") for handle in handles.values())

    wait_until(taken_back, what="no row of a query that is gone")


def put(one: Broker, table: str, v: float, value: dict[str, Any] | None, ts: int) -> None:
    """A version of a table's row; a deletion has the instant of its record."""
    data = None if value is None else json.dumps({"v": v} | value).encode()
    producer = Producer({"bootstrap.servers": one.bootstrap})
    producer.produce(table, data, json.dumps(v).encode(), timestamp=ts)
    assert producer.flush(30) == 0


def test_keys_of_rows(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    keys = {
        f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v": ["v"],
        f"SELECT COUNT(*) AS n FROM {name}": [],
        f"SELECT id FROM {name} [RANGE 1 SECOND]": None,
    }
    for sql, key in keys.items():
        assert output(shared, shared.register(f"{sql} EMIT CHANGES"))["key"] == key


def test_paused_a_query_writes_nothing_and_resumed_how_its_answer_differs(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name} [RANGE 1 SECOND] EMIT CHANGES INTO {name}")
    topic = output(shared, handle)["topic"]
    assert topic == f"{shared.names.results}.{name}"
    send(shared, name, 20)
    shared.http.patch(f"/queries/{handle}", json={"paused": True}).raise_for_status()
    written = len(shared.records(topic))
    send(shared, name, 20, 20)
    assert len(folded(shared.records(topic), "upsert")) == 19
    shared.http.patch(f"/queries/{handle}", json={"paused": False}).raise_for_status()
    assert len(compare(shared, handle, topic)) == 39
    assert len(shared.records(topic)) == written + 20


def test_streams_of_changes_go_to_the_log(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    window = f"{name} [RANGE 50 MILLISECONDS]"
    handles = {
        operator: shared.register(f"{operator} (SELECT id FROM {window} WHERE v > 3) EMIT CHANGES")
        for operator in ("ISTREAM", "DSTREAM", "RSTREAM")
    }
    plain = shared.register(f"SELECT id FROM {name} WHERE v > 3 EMIT CHANGES")
    send(shared, name, 40)
    records = shared.records(shared.names.results_log)
    wanted = [row for row in rows(39) if row["v"] > 3]  # type: ignore[operator]
    for handle in (handles["ISTREAM"], plain):
        assert output(shared, handle)["operator"] == "istream"
        found = of_query(records, handle)
        assert [(json.loads(one.value())["id"], at_ms(one)) for one in found] == [
            (row["id"], row["ts"]) for row in wanted
        ]
        keys = [json.loads(one.key())["row"] for one in found]
        assert len(set(keys)) == len(keys)
    went = of_query(records, handles["DSTREAM"])
    assert [(json.loads(one.value())["id"], at_ms(one)) for one in went] == [
        (row["id"], row["ts"] + 51)  # type: ignore[operator]
        for row in wanted
        if row["ts"] + 51 < BASE_MS + 390  # type: ignore[operator]
    ]
    whole = of_query(records, handles["RSTREAM"])
    last = max(at_ms(one) for one in whole)
    at_last = sorted(line(json.loads(one.value()).values()) for one in whole if at_ms(one) == last)
    answer = shared.snapshot(handles["RSTREAM"], at=last)["rows"]
    assert at_last == sorted(line(row) for row in answer)


def test_every_format_in_every_encoding(shared: Broker, name: str, schema_registry: TestRegistry) -> None:
    shared.create(stream_sql(name))
    handles: dict[tuple[str, str], list[str]] = {}
    for form, encoding in product(("upsert", "debezium", "diff"), ("json", "avro", "json_schema")):
        emit = f"EMIT CHANGES INTO {name}_{form}_{encoding} WITH (format = '{form}', encoding = '{encoding}')"
        handles[form, encoding] = [
            shared.register(f"SELECT v, COUNT(*) AS n FROM {name} [RANGE {ms} ms] GROUP BY v {emit}")
            for ms in (70, 100)
        ]
    send(shared, name, 50)
    client = SchemaRegistryClient.new_client({"url": schema_registry.url})
    for (form, encoding), sharing in handles.items():
        (topic,) = {output(shared, handle)["topic"] for handle in sharing}
        records = shared.records(topic)
        for handle in sharing:
            found = read(records, client, topic, form, encoding, query_id(handle))
            assert found == Counter(line(row) for row in shared.rows(handle)), (form, encoding)
        subjects = {f"{topic}-key", f"{topic}-value"} & schema_registry.subjects()
        assert len(subjects) == (0 if encoding == "json" else 2)


def read(records: list[Any], client: Any, topic: str, form: str, encoding: str, query: str) -> Counter[str]:
    """The rows of a query in a topic."""
    by_key: dict[str, Any] = {}
    counted: Counter[str] = Counter()
    for record in records:
        key = decoded(client, encoding, topic, record.key(), MessageField.KEY)
        if key["query"] != query:
            continue
        value = decoded(client, encoding, topic, record.value(), MessageField.VALUE)
        if form == "diff":
            counted[line(value["row"].values())] += value["weight"]
        else:
            by_key[line(key["key"].values())] = value if form == "upsert" else value["after"]
    assert min(counted.values(), default=0) >= 0
    return +counted + Counter(line(row.values()) for row in by_key.values() if row is not None)


def decoded(client: Any, encoding: str, topic: str, data: bytes | None, field: str) -> Any:
    """As a program reads it that knows the registry alone."""
    if data is None:
        return None
    if encoding == "json":
        return json.loads(data)
    return deserializer(client, encoding)(data, SerializationContext(topic, field))


@cache
def deserializer(client: Any, encoding: str) -> Any:
    if encoding == "avro":
        return AvroDeserializer(client)
    return JSONDeserializer(None, schema_registry_client=client)


# --- what is refused ------------------------------------------------------------------------------


def refusal(one: Broker, sql: str, state: str = "ERROR") -> dict[str, Any]:
    reply = one.http.post("/queries", json={"sql": sql})
    told: dict[str, Any] = reply.json()
    if reply.status_code in (200, 201, 202):
        assert told["state"] == state, told
        told = told["error"]
    elif "handle" in told:
        assert one.http.get(f"/queries/{told['handle']}").status_code == 404  # nothing stays of it
    return told


def test_what_cannot_be_written_is_refused(shared: Broker, name: str, schema_registry: TestRegistry) -> None:
    shared.create(stream_sql(name))
    select = f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v EMIT CHANGES"
    assert "upsert" in refusal(shared, f"{select} WITH (format = 'xml')")["hint"]
    assert refusal(shared, f"{select} INTO log")["code"] == "syntax"
    told = refusal(shared, f"{select} WITH (encoding = 'avro')")
    assert (told["code"], "EMIT CHANGES INTO" in told["hint"]) == ("not_supported", True)

    taken = shared.names.results_into(name)
    shared.admin.ensure([TopicPolicy(taken, 1, {"cleanup.policy": "delete"})])
    told = refusal(shared, f"{select} INTO {name}")
    assert told["code"] == "topic_policy_mismatch"
    assert f"topic {taken} has cleanup.policy=delete, it must be compact" in told["message"]
    shared.register(f"{select} INTO {name} WITH (format = 'diff')")  # which is what the topic is for

    for clause, what in (
        ("format = 'debezium'", "format"),
        ("format = 'diff', encoding = 'avro'", "encoding"),
    ):
        told = refusal(shared, f"{select} INTO {name} WITH ({clause})")
        assert (told["code"], what in told["message"]) == ("output_conflict", True)

    schema_registry.refused.add(f"{shared.names.results_into(name + '_a')}-value")
    told = refusal(shared, f"{select} INTO {name}_a WITH (encoding = 'avro')")
    assert (told["code"], "incompatible" in told["message"]) == ("schema_refused", True)


@pytest.fixture(scope="module")
def narrow(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, TestRegistry]]:
    """A broker with small limits, and a registry that may be away."""
    directory: Path = tmp_path_factory.mktemp("narrow")
    with (
        registry() as away,
        broker(
            kafka,
            directory / "data",
            f"n{directory.stat().st_ino}",
            INTO_TOPICS_MAX=3,
            RESULT_RECORD_BYTES_MAX=2048,
            RETRY_MS=100,
            TRANSACTION_TIMEOUT_MS=5_000,
            SCHEMA_REGISTRY_URL=away.url,
        ) as one,
    ):
        yield one, away


def test_a_record_that_is_too_large_ends_its_query_alone(
    narrow: tuple[Broker, TestRegistry], name: str
) -> None:
    one, _ = narrow
    one.create(stream_sql(name, columns="id BIGINT, v STRING, ts TIMESTAMP"))
    wide = one.register(f"SELECT id, v FROM {name} EMIT CHANGES")
    slim = one.register(f"SELECT id FROM {name} EMIT CHANGES")
    one.send(name, [{"id": i, "v": "x" * 1_000 * i, "ts": BASE_MS + i} for i in range(4)])
    wait_until(lambda: one.state(wide) == "ERROR", what="the query ends")
    told = one.http.get(f"/queries/{wide}").json()["error"]
    assert (told["code"], "result_record_bytes_max" in told["message"]) == ("changes_broken", True)
    wait_until(lambda: len(of_query(one.records(one.names.results_log), slim)) == 3)
    assert [status["state"] for status in one.status_topic()[query_id(wide)] if status] == [
        "RUNNING",
        "ERROR",
    ]
    one.kill()  # a query that has ended stays so
    one.start()
    assert one.state(wide) == "ERROR"
    before = one.records(one.names.results_log)
    one.send(name, [{"id": 4, "v": "x", "ts": BASE_MS + 9}])
    wait_until(lambda: len(of_query(one.records(one.names.results_log), slim)) == 4)
    after = one.records(one.names.results_log)
    assert len(of_query(after, wide)) == len(of_query(before, wide))


def test_topics_of_ones_own_are_so_many_at_most(narrow: tuple[Broker, TestRegistry], name: str) -> None:
    one, _ = narrow
    one.create(stream_sql(name))
    select = f"SELECT COUNT(*) AS n FROM {name} EMIT CHANGES INTO {name}"
    handles = [one.register(f"{select}{i}") for i in range(3)]
    told = refusal(one, f"{select}_more")
    assert (told["code"], "into_topics_max is 3" in told["message"]) == ("limit_exceeded", True)
    assert one.http.delete(f"/queries/{handles[0]}").status_code == 200
    for handle in (one.register(f"{select}_more"), *handles[1:]):
        assert one.http.delete(f"/queries/{handle}").status_code == 200


def test_a_registry_that_is_away_is_waited_for(narrow: tuple[Broker, TestRegistry], name: str) -> None:
    one, away = narrow
    one.create(stream_sql(name))
    away.stop()
    reply = one.http.post(
        "/queries",
        json={"sql": f"SELECT COUNT(*) AS n FROM {name} EMIT CHANGES INTO {name} WITH (encoding = 'avro')"},
    )
    assert (reply.json()["state"], reply.json()["error"]["code"]) == ("PENDING", "registry_unavailable")
    handle = reply.json()["handle"]
    send(one, name, 10)
    away.start()
    wait_until(lambda: one.state(handle) == "RUNNING", what="the query stands")
    topic = output(one, handle)["topic"]
    wait_until(lambda: one.records(topic), what="the answer is written")
    assert occasion_of(one.records(topic)[0]) == "snapshot"

    # Away at a restart, with changes to write: the shard says what it waits for, and loses nothing.
    one.kill()
    away.stop()
    one.launch()
    wait_until(lambda: one.readiness()[0] == 200, what="the broker is ready")
    one.send(name, rows(10, 10))
    wait_until(lambda: one.readiness()[0] == 503, what="the wait is told")
    assert "registry_unavailable" in {reason["code"] for reason in one.readiness()[1]["reasons"]}
    away.start()
    wait_until(lambda: one.readiness()[0] == 200, what="it goes on")
    wait_until(lambda: one.source(name)["now_ms"] == BASE_MS + 189)
    client = SchemaRegistryClient.new_client({"url": away.url})
    values = [
        decoded(client, "avro", topic, record.value(), MessageField.VALUE)["n"]
        for record in one.records(topic)
    ]
    assert values == list(range(9, 20))


def test_a_topic_that_is_deleted_is_made_again(narrow: tuple[Broker, TestRegistry], name: str) -> None:
    one, _ = narrow
    one.create(stream_sql(name))
    handle = one.register(f"SELECT id FROM {name} [RANGE 1 HOUR] EMIT CHANGES INTO {name}")
    topic = output(one, handle)["topic"]
    send(one, name, 10)
    one.admin.delete_topics([topic])
    wait_until(lambda: topic not in one.admin.topics(), what="the topic is gone")
    send(one, name, 10, 10)
    degraded = one.readiness()[1]["degraded"]
    assert [(told["topic"], told["code"]) for told in degraded] == [(topic, "result_topic_made_again")]
    assert sorted(json.loads(record.value())["id"] for record in one.records(topic)) == list(range(9, 19))
    one.http.delete(f"/queries/{handle}").raise_for_status()
    wait_until(lambda: one.http.get(f"/queries/{handle}").status_code == 404, what="the query is gone")
    one.register(f"SELECT id FROM {name} [RANGE 1 HOUR] EMIT CHANGES INTO {name}", handle)
    anew = [record for record in one.records(topic) if occasion_of(record) == "snapshot"]
    assert len(folded(anew, "upsert")) == len(one.rows(handle)) == 19
