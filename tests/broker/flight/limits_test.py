"""Whoever follows changes keeps nobody out, and whoever does not read is cut off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from broker.flight.messages import packed
from tests.broker.running import Broker, broker, unique_name
from tests.kafka import free_ports, wait_until

CALLS, SUBSCRIPTIONS = 2, 3
LARGE = "SELECT i, repeat('x', 200) AS s FROM generate_series(1, 200000) AS t(i)"
SETTINGS = {
    "FLIGHT_CALLS_MAX": CALLS,
    "FLIGHT_SUBSCRIPTIONS_MAX": SUBSCRIPTIONS,
    "REQUEST_BODY_TIMEOUT_MS": 1_000,
    "REQUEST_RATE_BYTES_MIN": 1_000_000,
}


@pytest.fixture(scope="module")
def port(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, int]]:
    (free,) = free_ports(1)
    directory = tmp_path_factory.mktemp("limits") / "data"
    with broker(kafka, directory, unique_name(), FLIGHT_PORT=free, **SETTINGS) as one:
        yield one, free


@contextlib.contextmanager
def connected(port: int) -> Iterator[flight.FlightClient]:
    with flight.connect(f"grpc://127.0.0.1:{port}") as client:
        yield client


def begun(client: flight.FlightClient, sql: str) -> Any:
    """A reader of a statement's rows, of which none is read."""
    command = flight.FlightDescriptor.for_command(packed("CommandStatementQuery", query=sql))
    options = flight.FlightCallOptions(timeout=120)
    info = client.get_flight_info(command, options)
    return client.do_get(info.endpoints[0].ticket, options)


def calls(one: Broker) -> int:
    (count,) = (
        door["connections"]
        for door in one.http.get("/status").json()["doors"]
        if door["protocol"] == "flight-sql"
    )
    return int(count)


def test_changes_that_are_followed_leave_room_for_calls(port: tuple[Broker, int]) -> None:
    one, number = port
    name = unique_name()
    one.create(f"CREATE STREAM {name} (k BIGINT)")
    with connected(number) as client:
        followed = [begun(client, f"SUBSCRIBE (SELECT k FROM {name})") for _ in range(SUBSCRIPTIONS)]
        assert calls(one) == SUBSCRIPTIONS > CALLS
        assert begun(client, "SELECT 1 AS one").read_all().to_pylist() == [{"one": 1}]
        with pytest.raises(flight.FlightUnavailableError, match="flight_subscriptions_max"):
            begun(client, f"SUBSCRIBE (SELECT k FROM {name})").read_chunk()
        for reader in followed:
            reader.cancel()
    wait_until(lambda: calls(one) == 0, 30, "all have ended")


def test_a_client_that_does_not_read_is_cut_off(port: tuple[Broker, int]) -> None:
    one, number = port
    with connected(number) as slow, connected(number) as other:
        reader = begun(slow, LARGE)
        assert reader.read_chunk().data.num_rows
        wait_until(lambda: calls(one) == 0, 60, "the call has ended")
        with pytest.raises((flight.FlightError, pa.ArrowException)):
            reader.read_all()
        assert begun(other, "SELECT 1 AS one").read_all().to_pylist() == [{"one": 1}]
        assert begun(slow, LARGE).read_all().num_rows == 200_000  # it may come again, and read


def test_changes_that_do_not_come_cut_nobody_off(port: tuple[Broker, int]) -> None:
    one, number = port
    name = unique_name()
    one.create(f"CREATE STREAM {name} (k BIGINT)")
    with connected(number) as client:
        reader = begun(client, f"SUBSCRIBE (SELECT k FROM {name})")
        until_s = time.monotonic() + 3
        wait_until(lambda: time.monotonic() > until_s, 10, "three times as long as a reader is waited for")
        one.send(name, [{"k": 7}])
        assert [row["k"] for row in reader.read_chunk().data.to_pylist()] == [7]
        reader.cancel()
