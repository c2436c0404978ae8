"""A schema registry over HTTP, the one of this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registry import TestRegistry, registry
from topics.formats.schemas import use_registry
from topics.registry import RegistrySettings


@pytest.fixture
def here() -> Iterator[TestRegistry]:
    with registry() as one:
        use_registry(RegistrySettings(one.url, timeout_s=1.0))
        yield one
    use_registry(None)
