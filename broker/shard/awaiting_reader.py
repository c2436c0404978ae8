"""Reads records of one stream, and waits with them while schemas that they name are not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.model.source import Stream
from topics.consumer import BatchConsumer, Polled
from topics.formats.schemas import schemas
from topics.formats.table import missing_schemas


class AwaitingReader:
    """Used by the shard's thread alone. consumer: what reads. held: records that wait; None: none do."""

    def __init__(self, stream: Stream, consumer: BatchConsumer, wake: Callable[[], None]) -> None:
        """wake: called, from another thread, when the schemas are known."""
        self.consumer = consumer
        self.held: Polled | None = None
        self._stream = stream
        self._wake = wake

    @property
    def is_ready(self) -> bool:
        """Whether records waited whose schemas are known by now."""
        return self.held is not None and not missing_schemas(
            self._stream, self.held.values, self.held.messages
        )

    def poll(self, records_max: int) -> Iterator[Polled]:
        """What may be decoded. Raises OffsetLost."""
        if self.held is not None:
            if self.is_ready:
                held, self.held = self.held, None
                yield held
            return
        for polled in self.consumer.poll(records_max, 0):
            missing = missing_schemas(self._stream, polled.values, polled.messages)
            if not missing:
                yield polled
                continue
            self.held = polled
            schemas().want(missing, self._woken)

    def _woken(self) -> None:
        self._wake()

    def close(self) -> None:
        """Wait and read no more."""
        schemas().forget(self._woken)
        self.consumer.close()
