"""Which streams are declared, by the topic of sources. No Spark."""

from __future__ import annotations

import json

import pytest

from spark_jobs.archive.statements import Statements
from topics.admin import Admin
from topics.producer import BatchProducer
from tureen.errors import TopicMissing
from tureen.protocol import TopicNames


def made(name: str, column: str = "id") -> bytes:
    return json.dumps({"sql": f"CREATE STREAM {name} ({column} BIGINT) WITH (topic = '{name}')"}).encode()


def test_what_stands_is_what_was_said_last(kafka: str, service_id: str) -> None:
    settings = {"bootstrap.servers": kafka}
    names = TopicNames(service_id)
    statements = Statements(settings, service_id)
    with pytest.raises(TopicMissing, match=names.sources) as missing:
        statements.refresh()
    assert "--service-id" in str(missing.value.hint)
    Admin(settings).ensure_service_topics(names)

    def say(*records: tuple[bytes, bytes | None]) -> dict[str, tuple[str, ...]]:
        producer = BatchProducer(settings)
        producer.send_many(names.sources, [value for _, value in records], [key for key, _ in records])
        producer.close()
        found = statements.refresh()
        return {name: tuple(field.name for field in stream.schema) for name, stream in found.items()}

    view = json.dumps({"sql": "CREATE VIEW few AS SELECT id FROM trades WHERE id < 3"}).encode()
    assert say((b"odd", b"{")) == {}
    given = say((b"trades", made("trades")), (b"quotes", made("quotes")), (b"few", view))
    assert given == {"trades": ("id",), "quotes": ("id",)}
    assert say((b"trades", None), (b"odd", made("odd"))) == {"quotes": ("id",), "odd": ("id",)}
    assert say((b"trades", made("trades", "number"))) == {
        "quotes": ("id",),
        "odd": ("id",),
        "trades": ("number",),
    }
    assert say() == say()
