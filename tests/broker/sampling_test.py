"""A query over a sample of a stream, on a running broker: its rows, what its answers say of themselves."""

from __future__ import annotations

import json

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker

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
