"""History for standing queries: what a shard's streams lack is read from the archive and made steps of.

When queries need rows of a stream from before its ``retained_from_ms``, they are read in another thread, the
latest first, a piece at a time; the shard's thread makes a step of each piece between its other steps. So an
answer is given from what is there at any time, says from when on it is complete, and reaches back further
with each step. At most one piece of a stream is read ahead.

A piece is for one history boundary, which is looked at again when its step is made: a piece that does not fit
any more, since retention went on meanwhile, is read again.

What keeps a stream from its history is its ``state``:

| state | |
|---|---|
| complete | nothing is wanted, or all that was is there |
| reading | pieces are on their way |
| archive_behind | the archive lacks rows from before the history boundary (``behind``: of these partitions) |
| archive_begins | the archive has nothing older |
| not_archived | the archive has no table of the stream |
| rows_limit | ``backfill_rows_max`` rows of the stream are in memory |
| unreadable | ``error`` says why; it is tried again |

Used by the shard's thread alone, but for :meth:`Backfills.facts`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from broker.archive.catalogue import ArchiveCatalogue
from broker.archive.chunks import ArchiveChunk, Backward
from broker.archive.history_boundary import HistoryBoundary, held_offsets, passed_offsets
from broker.base import logs
from broker.base.settings import Settings
from engine.engine import Engine
from engine.model.batch import Batch, concatenate
from engine.model.source import Stream
from engine.model.step import Backfill
from engine.sources.backfill import Wanted
from engine.views.view import View
from storage.archive.coverage import COMPLETE, disorder_ms
from storage.archive.errors import ArchiveMismatch
from storage.archive.reader import ArchivedStream
from topics.journal import HistoryNamed, digest_of
from tureen.errors import TureenError

State = Literal[
    "complete", "reading", "archive_behind", "archive_begins", "not_archived", "rows_limit", "unreadable"
]
LOOK_S = 0.05
"""How often streams are looked at for what they lack."""
GROWTH = 4
"""A step costs by what the stream holds, so a piece is at least this part of it: many rows take few steps."""
LOOK_FACTOR = 12
"""The archive of streams that lack nothing is looked at so much more seldom, for lists to tell of it."""

log = logs.get()


@dataclass(frozen=True, slots=True)
class _Reading:
    """Pieces that come one after another, as long as the history boundary moves with them."""

    archived: ArchivedStream
    below: Mapping[int, int]
    pieces: Backward


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look at the archive gave."""

    state: State
    behind: tuple[int, ...] = ()
    reading: _Reading | None = None
    piece: ArchiveChunk | None = None
    error: TureenError | None = None


@dataclass(slots=True)
class _History:
    """The history of one stream. base: the first row that the stream held when a piece was asked for.
    all_there: everything that is archived was brought back, and no row was let go of since.
    """

    stream: Stream
    state: State = "complete"
    behind: tuple[int, ...] = ()
    wanted_ms: int | None = None
    rows: int = 0
    steps: int = 0
    error: TureenError | None = None
    due_s: float = 0.0
    base: int = 0
    all_there: bool = False
    job: Future[_Found] | None = None
    reading: _Reading | None = field(default=None, repr=False)


class Backfills:
    """Reads the history that the streams of one shard lack from the archive, and gives it as steps."""

    def __init__(
        self, number: int, settings: Settings, archive: ArchiveCatalogue, wake: Callable[[], None]
    ) -> None:
        """wake: called from another thread when a piece is there."""
        self._number = number
        self._settings = settings
        self._archive = archive
        self._wake = wake
        self._by_name: dict[str, _History] = {}
        self._due_s = 0.0

    def facts(self, name: str) -> dict[str, Any] | None:
        """How a stream's history is; None before it was looked at. Any thread."""
        one = self._by_name.get(name)
        if one is None:
            return None
        return {
            "state": one.state,
            "wanted_from_ms": one.wanted_ms,
            "behind": list(one.behind),
            "rows": one.rows,
            "steps": one.steps,
            "error": None if one.error is None else one.error.as_dict(),
        }

    def totals(self) -> Iterator[tuple[str, int, bool]]:
        """(stream, backfilled rows in this life, whether more are under way). Any thread."""
        for name, one in list(self._by_name.items()):
            yield name, one.rows, one.state == "reading"

    @property
    def busy(self) -> bool:
        """Whether anything is being read."""
        return any(one.job is not None or one.state == "reading" for one in self._by_name.values())

    def ready(self, engine: Engine) -> Iterator[tuple[Backfill, HistoryNamed]]:
        """Steps of pieces that are there, each to be applied before the next is asked for."""
        now_s = time.monotonic()
        if now_s < self._due_s and not any(
            one.job is not None and one.job.done() for one in self._by_name.values()
        ):
            return
        self._due_s = now_s + LOOK_S
        streams = {
            stream.name: stream
            for stream in engine.catalogue.values()
            if isinstance(stream, Stream) and not stream.is_table
        }
        for gone in self._by_name.keys() - streams.keys():
            self._forget(self._by_name.pop(gone))
        for name, stream in streams.items():
            one = self._by_name.get(name)
            if one is None or one.stream != stream:
                self._forget(one)
                one = self._by_name[name] = _History(stream)
            piece = self._collected(one)
            wanted = engine.needs.history(name)
            if piece is not None and wanted is not None:
                view = engine.view()
                held = view.stored(stream.name)
                whole_ms = held.complete_from_ms
                kept = held.base == one.base and (whole_ms is None or whole_ms <= piece.until_ms)
                if piece.until_ms == wanted.until_ms or (piece.until_ms < wanted.until_ms and kept):
                    yield self._step(one, piece, wanted.until_ms, view)
                    wanted = engine.needs.history(name)
            self._look(one, wanted, engine, now_s)

    def _forget(self, one: _History | None) -> None:
        if one is not None and one.job is not None:
            one.job.cancel()

    def _collected(self, one: _History) -> ArchiveChunk | None:
        """What the job of a stream came to."""
        if one.job is None or not one.job.done():
            return None
        try:
            found = one.job.result()
        except CancelledError:
            found = _Found("complete")
        except Exception as defect:  # whatever is wrong with an archive stops no shard
            log.error("backfill_failed", shard=self._number, stream=one.stream.name, exc_info=defect)
            found = _Found("unreadable", error=TureenError(f"reading the archive failed: {defect!r}"))
        one.job = None
        one.reading = found.reading
        one.state, one.behind, one.error = found.state, found.behind, found.error
        if found.piece is None:
            one.due_s = time.monotonic() + self._settings.archive_check_ms / 1_000
        return found.piece

    def _step(
        self, one: _History, piece: ArchiveChunk, boundary_ms: int, view: View
    ) -> tuple[Backfill, HistoryNamed]:
        assert one.reading is not None
        name = one.stream.name
        one.rows += len(piece.rows)
        one.steps += 1
        if one.reading.pieces.until_ms <= one.reading.archived.coverage.complete_from_ms:
            one.all_there = True
        named = HistoryNamed(
            name, piece.from_ms, piece.until_ms, one.reading.below, len(piece.rows), digest_of(piece.rows)
        )
        log.info(
            "backfilled",
            shard=self._number,
            stream=name,
            rows=len(piece.rows),
            complete_from_ms=piece.from_ms,
        )
        rows = up_to(boundary_ms, piece.rows, piece.until_ms, one.stream, view)
        return Backfill(name, rows, piece.from_ms, boundary_ms), named

    def _look(self, one: _History, wanted: Wanted | None, engine: Engine, now_s: float) -> None:
        """Have the next piece read, if one is wanted and it is time."""
        if one.job is not None:
            return
        name = one.stream.name
        own = engine.view().stored(name)
        if own.base > one.base:
            one.all_there = False  # rows were let go of
        one.base = own.base
        counts = wanted is not None and wanted.rows > 0 and wanted.gone and not one.all_there
        one.wanted_ms = COMPLETE if counts else None if wanted is None else wanted.from_ms
        if wanted is None or one.wanted_ms is None:
            one.reading, one.state, one.behind, one.error = None, "complete", (), None
            if now_s >= one.due_s:
                one.due_s = now_s + LOOK_FACTOR * self._settings.archive_check_ms / 1_000
                one.job = self._archive.pool.submit(looked, self._archive, name)
            return
        if one.state == "complete":
            one.due_s = 0.0  # it lacks something as of now
        room = self._settings.backfill_rows_max - own.count
        if room <= 0:
            one.state, one.reading = "rows_limit", None
            return
        if now_s < one.due_s and one.state != "reading":
            return
        below = own.first_at_or_after(wanted.until_ms) - own.base
        ask = max(
            self._settings.backfill_chunk_rows, own.count // GROWTH, below + wanted.rows if counts else 0
        )
        boundary = boundary_at(one.stream, engine.view(), wanted.until_ms, time.time_ns() // 1_000_000)
        one.state = "reading"
        one.job = self._archive.pool.submit(
            read_piece, self._archive, boundary, one.wanted_ms, one.reading, min(room + below, ask)
        )
        one.job.add_done_callback(lambda _: self._wake())

    def close(self) -> None:
        """Nobody waits any more."""
        for one in self._by_name.values():
            self._forget(one)


def boundary_at(stream: Stream, view: View, boundary_ms: int, clock_ms: int) -> HistoryBoundary:
    """The history boundary of a stream at that instant, by what it holds."""
    info = next(one for one in view.sources() if one.name == stream.name)
    if stream.event_time and not info.lost.rejected:
        return HistoryBoundary(stream, boundary_ms, clock_ms, dict(info.next_offsets))
    rows = view.stored(stream.name)
    there = [batch for _, batch in rows.slices(rows.first_at_or_after(boundary_ms), rows.end)]
    there += view.waiting(stream.name)
    if stream.event_time:
        passed = passed_offsets(there, boundary_ms + disorder_ms(stream))
        return HistoryBoundary(stream, boundary_ms, clock_ms, dict(info.next_offsets), passed=passed)
    own = concatenate(stream.stored_schema, there)
    return HistoryBoundary(
        stream, boundary_ms, clock_ms, dict(info.next_offsets), held_offsets(own.partition, own.offset)
    )


def stored(stream: Stream, view: View, from_ms: int, until_ms: int) -> Batch:
    """What a stream holds of from_ms <= instant < until_ms."""
    rows = view.stored(stream.name)
    stop = rows.first_at_or_after(until_ms)
    pieces = [batch for _, batch in rows.slices(rows.first_at_or_after(from_ms), stop)]
    return concatenate(stream.stored_schema, pieces)


def up_to(boundary_ms: int, piece: Batch, until_ms: int, stream: Stream, view: View) -> Batch:
    """A piece that ended at an earlier history boundary, with what the stream still holds from there to the
    present one.

    NOW took the history boundary on since: windows of the last n rows keep those rows all the same.
    """
    if until_ms >= boundary_ms:
        return piece
    return concatenate(stream.stored_schema, [piece, stored(stream, view, until_ms, boundary_ms)])


def looked(archive: ArchiveCatalogue, name: str) -> _Found:
    """See what is archived of a stream that lacks nothing."""
    try:
        archive.stream(name)
    except TureenError as refused:
        return _Found("complete", error=refused)
    return _Found("complete")


def read_piece(
    archive: ArchiveCatalogue,
    boundary: HistoryBoundary,
    wanted_ms: int,
    reading: _Reading | None,
    rows: int,
) -> _Found:
    """The next piece before a history boundary, or why there is none."""
    name = boundary.stream.name
    try:
        if reading is None or reading.pieces.until_ms != boundary.before_ms:
            archived = archive.stream(name)
            if archived is None:
                return _Found("not_archived")
            archive.check(boundary.stream, archived.coverage)
            behind = boundary.behind(archived.coverage)
            if behind:
                return _Found("archive_behind", tuple(behind))
            from_ms = max(wanted_ms, archived.coverage.complete_from_ms)
            if from_ms >= boundary.before_ms:
                return _Found("archive_begins")
            reading = begin(archived, boundary, from_ms, rows)
        pieces = reading.pieces
        piece = archive.reading(name, lambda: pieces.next(rows))
    except TureenError as refused:
        return _Found("unreadable", error=refused)
    if piece is None:  # what was wanted when this reading began
        return _Found("reading")
    return _Found("reading", reading=reading, piece=piece)


def begin(archived: ArchivedStream, boundary: HistoryBoundary, from_ms: int, rows: int) -> _Reading:
    """Start to read what is before a history boundary."""
    below = {number: one.next_offset for number, one in archived.coverage.partitions.items()}
    batches = archived.chunks_backward(boundary.stream, from_ms, boundary.before_ms, rows)
    schema = boundary.stream.stored_schema
    pieces = Backward(
        schema, batches, from_ms, boundary.before_ms, lambda batch: boundary.missing(batch, below)
    )
    return _Reading(archived, below, pieces)


def read_again(
    archive: ArchiveCatalogue, boundary: HistoryBoundary, named: HistoryNamed, rows_max: int
) -> Batch:
    """The rows of a journalled step. Raises what the archive raises, and ArchiveMismatch."""
    archived = archive.stream(named.source)
    if archived is None:
        raise ArchiveMismatch(f"the archive no longer has a table of {named.source}")
    archive.check(boundary.stream, archived.coverage)

    def work() -> Batch:
        found = archived.rows(
            boundary.stream, from_ms=named.from_ms, until_ms=named.until_ms, rows_max=rows_max
        )
        kept = [batch.take(np.flatnonzero(boundary.missing(batch, named.below))) for batch in found]
        return concatenate(boundary.stream.stored_schema, kept)

    return archive.reading(named.source, work)
