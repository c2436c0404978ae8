"""Rows that broke a promise of their stream, as letters to the topic of late records.

Such a row may have been read long before: its record is not at hand any more. So its letter is made from the
row's columns, as the JSON object that an answer shows; the headers name the record.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from broker.shard.outbox import Letter
from engine.model.source import Stream
from engine.model.step import Violations
from topics.json_rows import json_objects
from topics.letters import Place, letter


def letters_of(broken: Violations, stream: Stream, late_topic: str, bytes_max: int) -> Iterator[Letter]:
    """A letter for each row. bytes_max: what the topic takes of a record."""
    rows = broken.rows
    values = json_objects(pa.Table.from_batches([rows.to_arrow()])).to_pylist()
    places = zip(rows.partition.tolist(), rows.offset.tolist(), strict=True)
    for value, (partition, offset), reason in zip(values, places, broken.reasons, strict=True):
        place = Place(stream.topic, partition, offset)
        text, key, headers = letter(value, None, (), place, reason, bytes_max)
        yield Letter(late_topic, text, key, headers=headers)
