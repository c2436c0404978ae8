"""A stream whose format cannot be read yet is not made: whoever asks is told, and tries again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.base import settings
from broker.runtime.reader_compilation import ReaderCompilation
from tests.broker.apis import api_without_shards, called
from tests.broker.uncompiled import WAITS, uncompiled

CREATE = "CREATE STREAM s (k BIGINT) WITH (topic = 'no-topic', create_topic = false, format = '{}')"


@pytest.fixture
def readers(tmp_path: Path) -> Iterator[ReaderCompilation]:
    """Those of CSV are being compiled, and that takes long."""
    made = ReaderCompilation({"csv": uncompiled(tmp_path).one}, WAITS)
    made.begin()
    yield made
    made.stop()


def test_events_of_debezium_in_avro_are_waited_for_where_there_is_a_registry(
    kafka: str, tmp_path: Path
) -> None:
    readers = ReaderCompilation({"avro": uncompiled(tmp_path).one}, WAITS)
    readers.begin()
    created = CREATE.replace("'{}'", "'debezium', changelog = TRUE")
    try:
        for registry, code in (("mock://r", "broker_unavailable"), ("", "topic_missing")):
            loaded = settings.load(data_dir=tmp_path, outcome_wait_ms=200, schema_registry_url=registry)
            with api_without_shards(loaded, kafka, readers, {}) as api:
                reply = called(api, "127.0.0.1", "POST", "/sources", {"sql": created})
                assert reply.json()["code"] == code, reply.text
    finally:
        readers.stop()


def test_create_waits_within_bounds(kafka: str, tmp_path: Path, readers: ReaderCompilation) -> None:
    loaded = settings.load(data_dir=tmp_path, outcome_wait_ms=200)
    with api_without_shards(loaded, kafka, readers, {}) as api:
        reply = called(api, "127.0.0.1", "POST", "/sources", {"sql": CREATE.format("csv")})
        assert (reply.status_code, reply.json()["code"]) == (503, "broker_unavailable")
        assert "what reads csv is being compiled" in reply.json()["message"]
        other = called(api, "127.0.0.1", "POST", "/sources", {"sql": CREATE.format("json")})
        assert other.json()["code"] == "topic_missing"
        readers.stop()  # nobody compiles it any more, so nobody is waited for
        again = called(api, "127.0.0.1", "POST", "/sources", {"sql": CREATE.format("csv")})
        assert again.json()["code"] == "topic_missing"
