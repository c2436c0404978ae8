"""Partitions whose first records were gone before they were read: what a stream then says it lacks.

A stream begins with the earliest records that its topic has. Where that is not offset 0, and it is not that
records at the beginning never counted (transactions that were aborted), retention took some, which nobody
here has seen. When they were is told by the first that are left: a record that is gone was at most the
lateness ahead of every one after it that is not late. Of the first few the largest timestamp is taken, since
any of them may be late; where none is left, all that is known is that they have been.

Tables say nothing: what is compacted away had a later version.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from engine.model.batch import Batch, Int64Array
from engine.model.source import Stream
from storage.archive.coverage import AFTER_A_GAP, disorder_ms
from topics.admin import Admin
from topics.consumer import Polled
from tureen.errors import KafkaUnavailable, TopicMissing


class LostPrefixes:
    """Finds the partitions of one stream whose first records were gone before they were read. Used by the
    shard's thread alone.
    """

    def __init__(self, stream: Stream, admin: Admin, begins: Mapping[int, int]) -> None:
        """begins: by partition that was never read, the offset at which it begins."""
        self._stream = stream
        self._admin = admin
        self._first: dict[int, int] = {}
        self.add(begins)

    def add(self, begins: Mapping[int, int]) -> None:
        """These are read from their beginning as well."""
        if not self._stream.is_table:
            self._first |= begins

    def complete_from_ms(self, polled: Polled, rows: Batch) -> int | None:
        """From which instant on the partitions are whole that this poll is the first of; None: they all are.

        rows: what of the records gave rows. O(first rows of such partitions).
        """
        found: int | None = None
        for number in self._first.keys() & polled.next_offsets.keys():
            begin = self._first.pop(number)
            here = polled.offset[polled.partition == number]
            first = int(here[0]) if len(here) else polled.next_offsets[number]
            if not begin and (not first or not self._has_lost(number)):
                continue
            of = rows.partition == number
            told = first_complete_ms(self._stream, rows.timestamp[of], time.time_ns() // 1_000_000)
            found = told if found is None else max(found, told)
        return found

    def _has_lost(self, number: int) -> bool:
        """Whether a partition that was read from its offset 0 on has lost records since; True where Kafka
        does not say.
        """
        try:
            return self._admin.begins({self._stream.topic: [number]})[self._stream.topic][number] > 0
        except (KafkaUnavailable, TopicMissing):
            return True


def first_complete_ms(stream: Stream, timestamps: Int64Array, clock_ms: int) -> int:
    """int64[n], of the first rows of a partition that lost records before -> from when on it lacks none."""
    if stream.event_time:
        timestamps = timestamps[timestamps <= clock_ms + stream.future_max_ms]
    first = timestamps[:AFTER_A_GAP]
    return int(first.max()) + disorder_ms(stream) + 1 if len(first) else clock_ms
