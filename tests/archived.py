"""Tables of an archive, written as the archive job does but without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from engine.model.source import Stream
from storage.archive import layout
from storage.archive.coverage import COMPLETE, Coverage, Covered

Row = tuple[int, int, int, Mapping[str, Any]]
"""Partition, offset, timestamp in ms, columns."""


@dataclass
class Archived:
    """The table of one stream, appended to as the job would. offsets: how far each partition has come."""

    root: Path
    stream: Stream
    complete_from_ms: int = COMPLETE
    topic_id: str = ""

    def __post_init__(self) -> None:
        self.coverage = Coverage(self.stream.topic, {}, self.complete_from_ms)

    @property
    def uri(self) -> str:
        return layout.table_uri(str(self.root), "streams", self.stream.name)

    def append(self, rows: Iterable[Row], next_offsets: Mapping[int, int] | None = None) -> None:
        """Commit rows. next_offsets: how far the topic is covered by that, where not to the last row."""
        rows = list(rows)
        partitions = dict(self.coverage.partitions)
        for number in {*(row[0] for row in rows), *(next_offsets or {})}:
            mine = [row for row in rows if row[0] == number]
            before = partitions.get(number, Covered(0, 0, None))
            known = [row[2] for row in mine] + ([] if before.max_ms is None else [before.max_ms])
            reached = max([before.next_offset, *(row[1] + 1 for row in mine)])
            partitions[number] = Covered(
                before.first_offset, (next_offsets or {}).get(number, reached), max(known, default=None)
            )
        self.coverage = Coverage(self.stream.topic, partitions, self.complete_from_ms, self.topic_id)
        self._write(rows, "append")

    def retain(self, complete_from_ms: int, rows: Iterable[Row]) -> None:
        """Retention: these rows are what is left."""
        self.complete_from_ms = complete_from_ms
        self.coverage = Coverage(self.stream.topic, self.coverage.partitions, complete_from_ms)
        self._write(list(rows), "overwrite")

    def _write(self, rows: Sequence[Row], mode: Any) -> None:
        write_deltalake(
            self.uri,
            _table(self.stream, rows),
            mode=mode,
            partition_by=list(layout.STREAM_PARTITIONS["hour"]),
            commit_properties=CommitProperties(custom_metadata={"userMetadata": self.coverage.to_text()}),
        )


def _table(stream: Stream, rows: Sequence[Row]) -> pa.Table:
    schema = layout.stream_schema(stream)
    instants = [datetime.fromtimestamp(row[2] / 1_000, UTC) for row in rows]
    ours = {
        layout.PARTITION: [row[0] for row in rows],
        layout.OFFSET: [row[1] for row in rows],
        layout.TIMESTAMP: [row[2] for row in rows],
        layout.DATE: [instant.date() for instant in instants],
        layout.HOUR: [instant.hour for instant in instants],
    }
    declared = {one.name: [row[3].get(one.name) for row in rows] for one in stream.schema}
    return pa.table(
        {name: pa.array((ours | declared)[name], schema.field(name).type) for name in schema.names}
    )
