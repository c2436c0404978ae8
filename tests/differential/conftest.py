"""Loads the profiles that say how many examples run; makes segments so small that a few rows fill some."""

from collections.abc import Iterator

import duckdb
import pytest

import engine.stems.segment
import engine.store.matches.spilled
import tests.strategies  # noqa: F401


@pytest.fixture(scope="module", autouse=True)
def small_segments(request: pytest.FixtureRequest) -> Iterator[None]:
    """Segments of a few rows, but for the tests that fill real ones."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.module.__name__.rpartition(".")[2].startswith("bulk"):
            patch.setattr(engine.stems.segment, "SEGMENT_ROWS", 8)
            patch.setattr(engine.store.matches.spilled, "LEAST_BYTES", 1)
        yield


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        yield connection
