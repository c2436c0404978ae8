"""A broker that most tests share, and names that do not clash in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.dear_queries import COUNT, FUNCTIONS, Gate, rows, until
from tests.broker.running import Broker, broker, cleaned_behind, unique_name
from tests.registry import TestRegistry, registry


@pytest.fixture(scope="package")
def schema_registry() -> Iterator[TestRegistry]:
    """The one that the shared broker knows."""
    with registry() as one:
        yield one


@pytest.fixture(scope="package")
def shared(
    kafka: str, tmp_path_factory: pytest.TempPathFactory, schema_registry: TestRegistry
) -> Iterator[Broker]:
    """One broker for all tests that do not stop it; they name their streams by ``name``."""
    directory: Path = tmp_path_factory.mktemp("broker")
    known = schema_registry.url
    with broker(kafka, directory / "data", f"t{uuid.uuid4().hex[:12]}", SCHEMA_REGISTRY_URL=known) as one:
        yield one


@pytest.fixture(autouse=True)
def _cleaned_behind() -> Iterator[None]:
    """Whatever a test starts is gone after it, passed or failed."""
    with cleaned_behind():
        yield


@pytest.fixture
def name() -> str:
    """A stream and topic name that no other test uses."""
    return unique_name()


def stream_sql(name: str, *, options: str = "", columns: str = "id BIGINT, v DOUBLE, ts TIMESTAMP") -> str:
    """A stream in event time on a topic of its own name.

    However slow the machine, no partition falls idle meanwhile: the last row stays above NOW.
    """
    if "idle_timeout" not in options:
        options += ", idle_timeout = '1 hour'"
    return f"CREATE STREAM {name} ({columns}) WITH (timestamp = 'ts'{options})"


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Of the functions of :mod:`tests.broker.dear_queries`, which are there."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "dear.py").write_text(FUNCTIONS)
    return Gate(tmp_path / "modules")


@pytest.fixture(params=[{"LIVENESS_TIMEOUT_MS": 30_000}])
def one(
    kafka: str, tmp_path: Path, service_id: str, name: str, gate: Gate, request: pytest.FixtureRequest
) -> Broker:
    """A broker with these settings, dear functions, and a stream that has its rows."""
    modules, settings = tmp_path / "modules", request.param
    started = Broker(
        kafka, tmp_path / "data", service_id, FUNCTIONS="dear", FUNCTIONS_PATH=modules, **settings
    ).start()
    started.create(stream_sql(name))
    count = started.register(f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY]")
    started.send(name, rows(COUNT))
    until(lambda: started.rows(count) == [[COUNT - 1]])
    return started
