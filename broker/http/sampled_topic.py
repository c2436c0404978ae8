"""What is known of a topic besides the records that were sampled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """name: of the source that is to read it. stamps: Kafka stamps records when they arrive."""

    topic: str
    name: str
    partitions: int
    records: int
    compacted: bool
    stamps: bool
