"""The demo's burst obeys a query that is paused and resumed through the public API."""

from __future__ import annotations

from broker.demo.bursts import FACTOR, Bursts
from broker.demo.flights import load
from broker.demo.replay import Replay
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.client import connect


def test_a_burst_lasts_while_the_query_of_the_switch_runs(service: Broker) -> None:
    flights, weather = load(1_000)
    service.create(flights.sql)
    replay = Replay([flights, weather], service.bootstrap, 1.0)
    with connect(service.url) as client:
        bursts = Bursts(client, replay, by_itself=False)
        bursts.begin()
        (listed,) = service.http.get("/queries", params={"search": "switch: burst"}).json()["queries"]
        path = f"/queries/{listed['query_id']}"
        assert (listed["query_id"], listed["state"]) == (bursts.switch_id, "PAUSED")

        def is_on() -> bool:
            bursts.tick()
            return bursts.is_on

        assert not is_on()
        assert service.http.patch(path, json={"paused": False}).status_code == 200
        wait_until(is_on, what="the burst begins")
        assert (replay.factor, bursts.count) == (FACTOR, 1)
        bursts.switch()  # the key
        assert not bursts.is_on
        assert service.http.get(path).json()["state"] == "PAUSED"
        bursts.switch()
        assert is_on()
        assert service.http.delete(path).status_code == 200
        wait_until(lambda: not is_on(), what="the burst ends with its switch")
        assert bursts.switch_id != listed["query_id"], "there is another one"
        path = f"/queries/{bursts.switch_id}"
        assert service.http.get(path).status_code == 200
        bursts.end()
        assert bursts.switch_id is None
        assert service.http.get(path).status_code == 404
