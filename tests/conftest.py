"""Fixtures of every area: a real Kafka, and names that no other test uses."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests import kafka as kafka_nodes
from tests import strategies as strategies  # registers the Hypothesis profiles


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The bootstrap address of a Kafka shared by the whole run; name your topics by ``service_id``."""
    with kafka_nodes.session() as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def _private_kafka() -> Iterator[kafka_nodes.Node]:
    with kafka_nodes.node() as private:
        yield private


@pytest.fixture
def kafka_node(_private_kafka: kafka_nodes.Node) -> kafka_nodes.Node:
    """A running Kafka that the test may stop, kill and start again; others use it afterwards."""
    _private_kafka.start()
    return _private_kafka


@pytest.fixture
def service_id() -> str:
    """A prefix of topics that no other test uses."""
    return f"t{uuid.uuid4().hex[:12]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever takes a Kafka fixture is marked, so that ``-m 'not kafka'`` leaves it out."""
    for item in items:
        if {"kafka", "kafka_node"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)
