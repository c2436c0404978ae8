"""Data and helpers that ``tables_test.py`` shares with other tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tests.broker.running import Broker


def put(one: Broker, topic: str, rows: Mapping[str, Any]) -> None:
    """One record a key; None deletes, bytes go as they are."""
    values = [
        value if value is None or isinstance(value, bytes) else orjson.dumps(value) for value in rows.values()
    ]
    one.producer.send_many(topic, values, [key.encode() for key in rows])
    one.producer.flush()
