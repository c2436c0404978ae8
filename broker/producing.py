"""The producers of the broker's own control records: all in sync, none twice, records up to 2 MiB.

What a user set for Kafka stands below these settings, and a producer's own above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer

RECORD_BYTES_MAX = 2 << 20


def producer(kafka: Mapping[str, str], own: Mapping[str, Any]) -> Producer:
    """A producer on the broker's Kafka. ``own``: what it waits for, and whom it tells."""
    return Producer(
        {
            "log_level": "0",
            **kafka,
            "acks": "all",
            "enable.idempotence": "true",
            "message.max.bytes": str(RECORD_BYTES_MAX),
            **own,
        }
    )
