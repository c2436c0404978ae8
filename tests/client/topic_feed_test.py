"""A service without HTTP: what stands, and what result topics hold, seen by Kafka alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaError, KafkaException

import tureen
from engine.model.step import Registration
from spark_jobs.scale_out.registry import RegistryEntry, as_record
from tests.client.conftest import Broker
from tests.client.results import Writer
from tureen.changes import ChangesEvent, EndEvent, Event, SnapshotEvent
from tureen.cli import main
from tureen.errors import KafkaUnavailable, NotSupported, UnknownQuery, UnknownSource
from tureen.facts import QueryStatus
from tureen.protocol import query_id
from tureen.topic_client import TopicTransport
from tureen.topic_feed import topic_events

HINT = "give the run --whole orders"


class Service(Writer):
    """A service as a scale-out leaves it: control topics and results, and nobody who answers."""

    def __init__(self, kafka: str, service_id: str) -> None:
        super().__init__(kafka, service_id)
        self.queries, self.status = self.topic("queries"), self.topic("status")

    def run(self, *args: str) -> Result:
        environment = {
            "TUREEN_KAFKA__BOOTSTRAP_SERVERS": self.settings["bootstrap.servers"],
            "TUREEN_SERVICE_ID": self.service_id,
            "TUREEN_URL": "http://127.0.0.1:1",
            "COLUMNS": "160",
        }
        return CliRunner().invoke(main, list(args), env=environment, catch_exceptions=False)

    def tell(self, handle: str, sql: str, **facts: Any) -> str:
        """A registration and its status, by the scale-out's own writer of them; the query id."""
        name = query_id(handle)
        key, value = as_record(name, RegistryEntry(Registration(name, sql), **facts), "1-1048576", {})
        self.producer.begin_transaction()
        self.producer.produce(self.queries, json.dumps({"sql": sql}), name, partition=0)
        self.producer.produce(self.status, value, key, partition=0)
        self.producer.commit_transaction(20)
        return name

    def follow(self, handle: str, *, live: bool = False) -> list[Event]:
        return list(topic_events(self.settings, self.service_id, handle, live=live))


@pytest.fixture
def service(kafka: str, service_id: str) -> Service:
    return Service(kafka, service_id)


def output(service: Service, name: str, operator: str = "changes", **facts: Any) -> dict[str, Any]:
    told = {"format": "upsert", "encoding": "json", "operator": operator, "key": ["city"]}
    return {"topic": f"{service.service_id}.{name}", **told, **facts}


def test_a_scale_outs_queries_and_why_one_is_refused(service: Service) -> None:
    refused = NotSupported("this join has no key", hint=HINT).as_dict()
    good, bad = tureen.new_handle(), tureen.new_handle()
    good_id = service.tell(
        good, "SELECT 1 EMIT CHANGES", state="RUNNING", placement="rows", output=output(service, "results")
    )
    bad_id = service.tell(bad, "SELECT 2 EMIT CHANGES", state="ERROR", error=refused)
    asked = service.run("register", "--by-topic", "--wait", "0", "SELECT 3 EMIT CHANGES")
    new_id = query_id(asked.stdout.strip())

    table = service.run("queries", "--by-topic")
    assert table.exit_code == 0, table.output
    for word in (good_id, "rows", f"{service.service_id}.results", "SELECT 1 EMIT CHANGES", new_id):
        assert word in table.stdout
    assert f"{bad_id} ERROR: this join has no key\n  hint: {HINT}\n" in table.stdout
    told = {one["query_id"]: one for one in json.loads(service.run("queries", "--by-topic", "--json").stdout)}
    assert {name: one["state"] for name, one in told.items()} == {
        good_id: "RUNNING", bad_id: "ERROR", new_id: "PUBLISHED",
    }  # fmt: skip
    assert (told[good_id]["lane"], told[bad_id]["error"]["hint"]) == ("rows", HINT)
    (one,) = json.loads(service.run("queries", "--by-topic", "--json", bad).stdout)
    assert one["query_id"] == bad_id
    watched = service.run("watch", "--by-topic", bad)
    assert (watched.exit_code, HINT in watched.stderr) == (1, True)


def test_a_registration_that_nobody_answers_says_what_it_waits_for(service: Service) -> None:
    done = service.run("register", "--by-topic", "--wait", "0.1", "SELECT v FROM s EMIT CHANGES INTO mine")
    handle = done.stdout.strip()
    assert done.stderr.splitlines() == [
        f"waiting up to 0.1 s for its record on {service.status}",
        f"query {query_id(handle)} is published; there is no record of it on {service.status} yet",
        "its handle, a secret that is shown only once:",
        "its state: tureen queries --by-topic",
        (
            f"its changes go to {service.service_id}.results.mine; to follow them: "
            f"tureen watch --by-topic {handle}"
        ),
    ]
    alone = service.run("register", "--by-topic", "--wait", "0", "SELECT v FROM s")
    assert alone.stderr.endswith(f"fetch its answer: tureen snapshot --by-topic {alone.stdout.strip()}\n")


def test_an_answer_on_a_result_topic_is_watched(service: Service) -> None:
    handle = tureen.new_handle()
    name = service.tell(
        handle, "SELECT", state="RUNNING", placement="parts", output=output(service, "results.mine")
    )
    topic = service.topic("results.mine")
    (empty, end) = service.follow(handle)
    assert (empty, end) == (SnapshotEvent("", None, (), ()), EndEvent(None, "caught_up"))

    def key(city: str) -> dict[str, Any]:
        return {"query": name, "key": {"city": city}}

    service.commit(topic, [(key("Bern"), {"city": "Bern", "n": 1}), (key("Zug"), {"city": "Zug", "n": 2})])
    shown = service.run("watch", "--by-topic", handle, "--once")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[0].split() == ["at", "city", "n"]
    assert sorted(shown.stdout.splitlines()[1:]) == ["=\t\tBern\t1", "=\t\tZug\t2"]
    lines = service.run("watch", "--by-topic", handle, "--once", "--json").stdout.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["snapshot", "end"]


def test_a_log_of_what_went_is_told_as_changes(service: Service) -> None:
    handle = tureen.new_handle()
    name = service.tell(
        handle, "SELECT", state="RUNNING", output=output(service, "results.gone", "dstream", key=None)
    )
    topic = service.topic("results.gone")
    records = [({"query": name, "row": f"7-{n}"}, {"city": "Bern", "n": n}) for n in range(2)]
    service.commit(topic, records, partition=0)
    first, columns, changes, end = service.follow(handle)
    assert isinstance(first, SnapshotEvent)
    assert isinstance(columns, SnapshotEvent)
    assert [column.type for column in columns.columns] == ["STRING", "BIGINT"]
    assert isinstance(changes, ChangesEvent)
    assert [tuple(change) for change in changes] == [(-1, 1_000, ("Bern", 0)), (-1, 1_000, ("Bern", 1))]
    assert end == EndEvent("1-7", "caught_up")


def test_a_topic_that_has_no_leader_yet_is_asked_again() -> None:
    """As one that was made a moment ago; what else is refused is told at once."""
    transport = TopicTransport({"bootstrap.servers": "nowhere:1"}, "s", 1.0)
    answers = iter([KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, None])

    def asked() -> str:
        code = next(answers)
        if code is not None:
            raise KafkaException(KafkaError(code))
        return "there"

    assert transport._asked(asked) == "there"
    answers = iter([KafkaError.INVALID_CONFIG, None])
    with pytest.raises(KafkaUnavailable):
        transport._asked(asked)


def test_what_has_no_topic_to_read_is_refused(service: Service) -> None:
    with pytest.raises(UnknownQuery, match=r"queries --by-topic"):
        service.follow(tureen.new_handle())
    silent, avro, waiting = (tureen.new_handle() for _ in range(3))
    service.tell(silent, "SELECT", state="RUNNING")
    service.tell(avro, "SELECT", state="RUNNING", output=output(service, "results.a", encoding="avro"))
    service.tell(waiting, "SELECT", state="PENDING", error=UnknownSource("s").as_dict())
    with pytest.raises(NotSupported, match="no EMIT CHANGES"):
        service.follow(silent)
    with pytest.raises(NotSupported, match="avro"):
        service.follow(avro)
    with pytest.raises(UnknownSource):
        service.follow(waiting)


def until(events: Iterator[Event], found: Callable[[Event], bool]) -> Event:
    return next(event for event in events if found(event))


def test_a_brokers_query_is_followed_until_it_goes(broker: Broker, client: tureen.Client) -> None:
    name = f"feed_{tureen.new_handle()[:8]}"
    client.create(f"CREATE STREAM {name} (city STRING, price INTEGER) WITH (topic = '{name}')")
    kafka = {"bootstrap.servers": broker.bootstrap}
    with tureen.connect("http://127.0.0.1:1", kafka, broker.service_id) as by_topic:
        query = by_topic.register(f"SELECT city, COUNT(*) AS n FROM {name} GROUP BY city EMIT CHANGES")
        assert query.facts["output"]["topic"] == f"{broker.service_id}.results"
        listed = {one.query_id: one for one in by_topic.queries()}
        assert isinstance(listed[query.query_id], QueryStatus)
        assert listed[query.query_id].sql == query.sql

        with closing(topic_events(kafka, broker.service_id, query.handle)) as events:
            assert isinstance(next(events), SnapshotEvent)
            for n in (1, 2):
                broker.produce(name, [{"city": "Bern", "price": n}])
                found = until(events, lambda one: isinstance(one, ChangesEvent))
                assert isinstance(found, ChangesEvent)
                assert found.came() == [{"city": "Bern", "n": n}]
                assert found.went() == ([{"city": "Bern", "n": 1}] if n == 2 else [])
            query.unregister()
            ends = list(events)
        assert isinstance(ends[-1], EndEvent)
        assert ends[-1].reason == "unregistered"
        assert [one.went() for one in ends if isinstance(one, ChangesEvent)] == [[{"city": "Bern", "n": 2}]]
