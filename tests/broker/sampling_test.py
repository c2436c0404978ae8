"""A query over a sample of a stream, on a running broker: its rows, what its answers say of themselves."""

from __future__ import annotations

import json

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import await_ended, wait_until
from tureen.approximation import approximations_of
from tureen.changes import SnapshotEvent
from tureen.protocol import query_id
from tureen.topic_feed import topic_events

BASE_MS = 1_700_000_000_000


def test_answers_of_a_sample_are_told_to_be_one(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.send(name, [{"id": n, "v": 0.5, "ts": BASE_MS + n} for n in range(2_000)])
    every = shared.register(f"SELECT id FROM {name}")
    some = shared.register(f"SELECT id FROM {name} SAMPLE(10)")
    fewer = shared.register(f"SELECT id FROM {name} SAMPLE(2)")
    there = {row[0] for row in shared.await_rows(every, 1_999)}
    ten, two = {row[0] for row in shared.rows(some)}, {row[0] for row in shared.rows(fewer)}
    assert two < ten < there
    assert 0.05 < len(ten) / len(there) < 0.15

    reply = shared.http.get(f"/queries/{some}/snapshot")
    (tag,) = reply.json()["approximation"]
    assert (tag["kind"], tag["origin"], tag["amount"], tag["unit"]) == ("sample", "declared", 10, "percent")
    assert json.loads(reply.headers["Tureen-Approximation"]) == [tag]
    exact = shared.http.get(f"/queries/{every}/snapshot").json()
    assert (exact["approximate"], exact["approximation"]) == (False, [])


def test_whoever_reads_the_result_topic_is_told_of_a_sample(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name} SAMPLE(50) [RANGE 1 HOUR] EMIT CHANGES INTO {name}")
    wait_until(lambda: query_id(handle) in shared.status_topic(), what="its state is published")
    kafka, service_id = {"bootstrap.servers": shared.bootstrap}, shared.names.service_id
    tags = approximations_of(shared.http.get(f"/queries/{handle}/snapshot").json()["approximation"])
    assert len(tags) == 1
    (before, _) = topic_events(kafka, service_id, handle, live=False)  # there is no record yet
    shared.send(name, [{"id": n, "v": 0.5, "ts": BASE_MS + n} for n in range(200)])
    wait_until(lambda: shared.source(name)["now_ms"] == BASE_MS + 198, what="the rows are in")
    await_ended(shared.bootstrap, shared.names.results_into(name))
    (after, _) = topic_events(kafka, service_id, handle, live=False)
    for snapshot in (before, after):
        assert isinstance(snapshot, SnapshotEvent)
        assert snapshot.approximation == tags
    assert sorted(after.rows) == sorted(map(tuple, shared.rows(handle)))
