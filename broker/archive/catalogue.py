"""The archive as a worker sees it: opened when needed, looked at again now and then, never trusted to answer.

An archive that cannot be read is tried again after a while, which doubles up to ``archive_retry_ms``; until
then :meth:`ArchiveCatalogue.stream` raises what it raised, without going there. Whoever asks decides what to
do without it: nothing of the broker waits for the archive but what was asked of it.

Reading blocks, so it is for threads of its own. What :meth:`ArchiveCatalogue.stream` gives is for the one
thread of :attr:`ArchiveCatalogue.pool`; others open a stream for themselves
(:meth:`ArchiveCatalogue.opened`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from broker.base import logs
from broker.base.settings import Settings
from engine.model.source import Stream
from storage.archive.coverage import COMPLETE, Coverage
from storage.archive.errors import ArchiveMismatch
from storage.archive.reader import Archive, ArchivedStream
from tureen.errors import LimitExceeded, TureenError

Found = TypeVar("Found")

log = logs.get()


@dataclass(slots=True)
class _Known:
    """What was seen of a stream's table at the last look, and why nothing can be at present."""

    stream: ArchivedStream | None = None
    seen_s: float = 0.0
    seen_ms: int | None = None
    error: TureenError | None = None
    again_s: float = 0.0
    pause_s: float = 0.0


class ArchiveCatalogue:
    """Opens the archive for a worker, looks at it now and then, and knows what it has of each stream."""

    def __init__(self, settings: Settings) -> None:
        self.root = settings.archive_shown
        self.pool: Executor = ThreadPoolExecutor(1, "archive")
        self._archive = Archive(settings.archive, settings.archive_storage)
        self._check_s = settings.archive_check_ms / 1_000
        self._retry_first_s = min(settings.retry_ms, settings.archive_retry_ms) / 1_000
        self._retry_max_s = settings.archive_retry_ms / 1_000
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._reached: bool | None = None
        self.topic_ids: dict[str, str] = {}
        """By topic that streams read: its id, which tells it from an earlier topic of that name. Kept up to
        date by whoever reads the topics.
        """

    def stream(self, name: str) -> ArchivedStream | None:
        """The table of a stream, as of a short while ago; None where it has none.

        Raises what the archive raises, and the same again until it is time to try again.
        """
        now_s = time.monotonic()
        with self._lock:
            known = self._known.setdefault(name, _Known())
            if known.error is not None and now_s < known.again_s:
                raise known.error
            fresh = known.seen_ms is not None and now_s - known.seen_s < self._check_s
            if fresh and known.error is None:
                return known.stream
        found = self.reading(name, lambda: self._archive.stream(name))
        with self._lock:
            known.stream, known.seen_s, known.seen_ms = found, time.monotonic(), time.time_ns() // 1_000_000
        return found

    def opened(self, name: str) -> ArchivedStream | None:
        """The newest version of a stream's table, for the calling thread. Raises as :meth:`stream`."""
        with self._lock:
            known = self._known.get(name)
            if known is not None and known.error is not None and time.monotonic() < known.again_s:
                raise known.error
        return self.reading(name, lambda: self._archive.stream(name))

    def check(self, stream: Stream, coverage: Coverage) -> None:
        """Raise ArchiveMismatch where a table is of another topic than the stream: its offsets are others."""
        if coverage.topic != stream.topic:
            raise ArchiveMismatch(
                f"the archive's table {stream.name} is of topic {coverage.topic}, the stream of topic "
                f"{stream.topic}",
                hint="a table is always of one topic: give the stream another name, or use another archive",
            )
        known = self.topic_ids.get(stream.topic)
        if known is not None and coverage.topic_id and coverage.topic_id != known:
            raise ArchiveMismatch(
                f"the archive's table {stream.name} is of an earlier topic {stream.topic}, which was deleted",
                hint="offsets start from 0 in a new topic: use another archive, or another name",
            )

    def reading(self, name: str, work: Callable[[], Found]) -> Found:
        """What ``work`` gives, which reads a table; remembers when it could not. Raises what it raises."""
        try:
            found = work()
        except LimitExceeded:
            raise  # it can be read, but not so much
        except TureenError as refused:
            self._failed(name, refused)
            raise
        with self._lock:
            known = self._known.setdefault(name, _Known())
            if known.error is not None:
                log.info("archive_readable", stream=name)
            known.error, known.pause_s = None, 0.0
            self._reached = True
        return found

    def _failed(self, name: str, error: TureenError) -> None:
        with self._lock:
            known = self._known.setdefault(name, _Known())
            if known.error is None:
                log.warning("archive_unreadable", stream=name, code=error.code, reason=error.message)
            known.error = error
            known.pause_s = min(self._retry_max_s, 2 * known.pause_s or self._retry_first_s)
            known.again_s = time.monotonic() + known.pause_s
            self._reached = isinstance(error, ArchiveMismatch)

    def coverage(self, name: str) -> Coverage | None:
        """The coverage of a stream, as of the last look; None where none is known."""
        known = self._known.get(name)
        return None if known is None or known.stream is None else known.stream.coverage

    def error(self, name: str) -> TureenError | None:
        """Why what is archived of a stream cannot be read at present."""
        known = self._known.get(name)
        return None if known is None else known.error

    def facts(self) -> dict[str, Any]:
        """What lists and pages tell of the archive as a whole. reachable: None before the first look."""
        errors = [known.error for known in list(self._known.values()) if known.error is not None]
        return {
            "root": self.root,
            "reachable": self._reached,
            "error": errors[-1].as_dict() if errors else None,
        }

    def stream_facts(self, name: str) -> dict[str, Any]:
        """What is archived of a stream, as of the last look: complete from which instant (None: all there
        ever was), and to which.
        """
        known = self._known.get(name, _Known())
        coverage = self.coverage(name)
        error = None if known.error is None else known.error.as_dict()
        told: dict[str, Any] = {"archived": coverage is not None, "seen_ms": known.seen_ms, "error": error}
        if coverage is None:
            return told | {"complete_from_ms": None, "until_ms": None, "next_offsets": {}}
        began = coverage.complete_from_ms
        return told | {
            "complete_from_ms": None if began == COMPLETE else began,
            "until_ms": coverage.max_ms,
            "next_offsets": {number: one.next_offset for number, one in sorted(coverage.partitions.items())},
        }

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
