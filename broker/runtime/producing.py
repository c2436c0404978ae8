"""The producers of the broker's own control records: all in sync, none twice, a key in one partition.

What a user set for Kafka stands below these settings, and a producer's own above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer

from topics.sizes import producing


def producer(kafka: Mapping[str, str], record_bytes_max: int, own: Mapping[str, Any]) -> Producer:
    """A producer on the broker's Kafka. ``own``: what it waits for, and whom it tells."""
    return Producer(
        {
            "log_level": "0",
            **kafka,
            "acks": "all",
            "enable.idempotence": "true",
            **producing(record_bytes_max),
            "partitioner": "murmur2_random",  # as Java's clients, Faust's and tureen's: one order for a key
            **own,
        }
    )
