"""The broker whose doors are tested."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.doors import Door, opened_doors
from tests.registry import TestRegistry


@pytest.fixture(scope="package")
def door(
    kafka: str, tmp_path_factory: pytest.TempPathFactory, schema_registry: TestRegistry
) -> Iterator[Door]:
    """One for all tests that do not stop it."""
    with opened_doors(kafka, tmp_path_factory.mktemp("door") / "data", schema_registry.url) as opened:
        yield opened
