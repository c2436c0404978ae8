"""Answers that reach further back than what is in memory: of archived and retained rows, from scratch.

The retained part is that of a view, so the answer is true at the view's position. Of each stream the rows
before its history boundary come from the archive; where the archive has yet to receive some of them, the
answer is refused and not given without them. No shard waits, and nothing of it is touched.

For an earlier instant a stream's rows up to that instant are read, for a period those up to its end, so the
distance from NOW costs nothing. Of a table all versions are read where its past matters: it is asked for
before what it retains, or rows are joined with the version of their own instant; if the archive has them all,
else it is taken as it stands.

Rows that came too late for the stream are in the archive, and so in these answers.

Limits: rows read (``archive_rows_max``), time (``archive_timeout_ms``), answers at a time
(``archive_answers_max``) and waiting for their turn (``archive_waiting_max``).

Cost: O(rows read), and what the query costs over all rows that its windows hold. Memory: the rows read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from broker.archive.backfill import boundary_at
from broker.archive.catalogue import ArchiveCatalogue
from broker.archive.history_boundary import HistoryBoundary
from broker.base.settings import Settings
from engine.model.answer import Answer
from engine.model.batch import Batch
from engine.model.period import At, instants_of
from engine.model.source import SourceName
from engine.views.recompute import History, needed_from
from engine.views.view import View
from storage.archive.coverage import COMPLETE
from storage.archive.reader import ArchivedStream
from tureen.errors import HistoryUnavailable, InstantOutOfRange, LimitExceeded, NotArchived

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ArchiveAnswer:
    """An answer with so many rows of the archive. earliest_ms: before it nothing is archived of a stream that
    the query reads; None: all there ever was is.
    """

    answer: Answer
    rows: int
    earliest_ms: int | None


class _Budget:
    """How many rows may be read, and until when."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._until_s = time.monotonic() + settings.archive_timeout_ms / 1_000
        self.rows = 0

    def take(self, rows: int) -> None:
        """Raises LimitExceeded, HistoryUnavailable."""
        self.expect(rows)
        self.rows += rows
        if time.monotonic() > self._until_s:
            raise HistoryUnavailable(
                f"the archive gave {self.rows:,} rows in {self._settings.archive_timeout_ms / 1_000:g} s, "
                "and there are more",
                hint="narrow the windows, or raise archive_timeout_ms",
            )

    def expect(self, rows: int) -> None:
        """Check that ``rows`` more may come. Raises LimitExceeded."""
        allowed = self._settings.archive_rows_max
        if self.rows + rows > allowed:
            hint = "narrow the windows, or ask for a later instant"
            raise LimitExceeded("archive_rows_max", allowed, self.rows + rows, hint=hint)


class ArchiveAnswers:
    """Answers queries of one worker with rows of its archive."""

    def __init__(self, settings: Settings, archive: ArchiveCatalogue) -> None:
        self.pool = ThreadPoolExecutor(settings.archive_answers_max, "archive-answers")
        self.waiting = 0
        """Answers under way or waiting; counted by the event loop, which submits them."""
        self._settings = settings
        self._archive = archive

    def refuse_if_busy(self) -> None:
        """Raises HistoryUnavailable when too many wait already."""
        if self.waiting >= self._settings.archive_answers_max + self._settings.archive_waiting_max:
            raise HistoryUnavailable(
                f"{self.waiting} answers wait for the archive already",
                hint="try again later, or raise archive_answers_max",
            )

    async def within(self, work: Callable[[], Found]) -> Found:
        """Do ``work`` in a thread of :attr:`pool` and return what it gives. For the event loop.

        Raises HistoryUnavailable when too many wait already, and what work raises.
        """
        self.refuse_if_busy()
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, work)
        finally:
            self.waiting -= 1

    def answer(self, view: View, query_id: str, at: At, rows_max: int) -> ArchiveAnswer:
        """In a thread of :attr:`pool`.

        Raises UnknownQuery, QueryPaused, InstantOutOfRange, LimitExceeded, HistoryUnavailable, NotArchived,
        and what the archive raises.
        """
        budget = _Budget(self._settings)
        now_ms = view.now_ms(query_id)
        instants = None if now_ms is None else instants_of(at, now_ms)
        if now_ms is None or instants is None:
            return ArchiveAnswer(
                view.snapshot(query_id, at, rows_max=rows_max), 0, None
            )  # says what is wrong
        standing = view.standing[query_id]
        instant_ms, last_ms = instants
        histories: dict[SourceName, History] = {}
        earliest_ms: int | None = None
        for name, from_ms in needed_from(standing.query, instant_ms).items():
            stream, boundary_ms = view.stream(name), view.boundary_ms(name)
            if boundary_ms is None or (from_ms is not None and from_ms >= boundary_ms):
                continue
            if stream.is_table and stream.retroactive and instant_ms >= boundary_ms:
                continue
            before_ms = boundary_ms if stream.is_table else min(boundary_ms, last_ms + 1)
            boundary = boundary_at(stream, view, before_ms, time.time_ns() // 1_000_000)
            archived = self._archived(boundary)
            if archived is None:
                continue
            began_ms = archived.coverage.complete_from_ms
            if began_ms != COMPLETE:
                earliest_ms = began_ms if earliest_ms is None else max(earliest_ms, began_ms)
            if began_ms >= boundary_ms:
                continue  # what is there reaches further back
            first_ms = max(COMPLETE if from_ms is None else from_ms, began_ms)
            whole = first_ms == COMPLETE
            rows = self._rows(archived, boundary, first_ms, budget)
            histories[name] = History(rows, None if whole else min(first_ms, boundary_ms))
        try:
            answer = view.afresh(query_id, histories, at=at, rows_max=rows_max)
        except InstantOutOfRange as refused:
            hint = "older rows of the query's sources are not archived"
            raise InstantOutOfRange(
                refused.at_ms, refused.earliest_ms, refused.latest_ms, hint=hint
            ) from None
        return ArchiveAnswer(answer, budget.rows, earliest_ms)

    def _archived(self, boundary: HistoryBoundary) -> ArchivedStream | None:
        """The table that has what is before a history boundary; None: the history of a table that is not all
        there.

        Raises HistoryUnavailable, NotArchived.
        """
        stream = boundary.stream
        archived = self._archive.opened(stream.name)
        if archived is None:
            if stream.is_table:
                return None
            raise NotArchived(stream.name)
        self._archive.check(stream, archived.coverage)
        behind = boundary.behind(archived.coverage)
        if stream.is_table and (behind or archived.coverage.complete_from_ms != COMPLETE):
            return None
        if behind:
            raise HistoryUnavailable(
                f"rows of {stream.name} that are no longer in memory are not in the archive yet "
                f"(partitions {', '.join(map(str, behind))})",
                hint="try again when the archive job has caught up; is it running?",
            )
        return archived

    def _rows(
        self, archived: ArchivedStream, boundary: HistoryBoundary, first_ms: int, budget: _Budget
    ) -> Iterator[Batch]:
        """What is before a history boundary from an instant on, in order."""
        if first_ms >= boundary.before_ms:
            return
        below = {number: one.next_offset for number, one in archived.coverage.partitions.items()}
        stream, until_ms = boundary.stream, boundary.before_ms

        def begun() -> Iterator[Batch]:
            expected = archived.count(first_ms, until_ms)
            budget.expect(expected)
            return archived.rows(stream, from_ms=first_ms, until_ms=until_ms, rows_max=expected)

        batches = self._archive.reading(stream.name, begun)
        while (batch := self._archive.reading(stream.name, lambda: next(batches, None))) is not None:
            budget.take(len(batch))
            yield batch.take(np.flatnonzero(boundary.missing(batch, below)))
