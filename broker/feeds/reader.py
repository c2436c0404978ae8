"""One reader's way through the changes of a query: a position, and what comes after it.

From the hub's memory where it reaches back so far; else what changed is worked out again from retained rows,
where that can be done; else :class:`MustRefetch`. A reader holds no changes of its own but those that it just
asked for. Runs on the event loop; what takes long goes to the pool of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from broker.base.cursor import ALTERED_HINT, Cursor
from broker.feeds.hub import Hub
from broker.feeds.lines import LINE_ROWS, change_lines, change_texts
from broker.feeds.memory import Entry, FeedEnd, RecentChanges, Told
from broker.node.request_work import RequestWork
from engine.model.answer import Answer
from engine.model.approximation import Approximation
from engine.views.view import View
from tureen.errors import (
    InstantOutOfRange,
    LimitExceeded,
    MustRefetch,
    NotSupported,
    QueryPaused,
    UnknownQuery,
)

ENTRIES_AT_ONCE = 16
ENCODED_AT_ONCE = 512
"""Rows of changes that are made lines of without leaving the event loop."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ChangeLines:
    """Lines of changes, and where a reader is behind them. told_s: when they were told; None: they were
    worked out again.
    """

    lines: tuple[bytes, ...]
    cursor: Cursor
    rows: int
    told_s: float | None = None


class Reader:
    """Reads the changes of one query. memory: of the query. cursor: where it is. end: why nothing follows,
    when it is so.
    """

    def __init__(
        self,
        hub: Hub,
        memory: RecentChanges,
        pool: RequestWork,
        rows_max: int,
        history: Callable[[tuple[str, ...]], int],
    ) -> None:
        """rows_max: more changes are not worked out again. history: the last step of the shard that brought
        rows of the archive to any of these sources; 0: none did.
        """
        self._history = history
        self._hub = hub
        self.memory = memory
        self._pool = pool
        self._rows_max = rows_max
        reading = hub.read(memory, 0, 0)
        self._view, self._birth = reading.view, reading.birth
        self.cursor = Cursor(self._view.position, None, self._birth)
        self.end: FeedEnd | None = None

    @property
    def head(self) -> bytes:
        """What the first line of a feed has besides: columns and operator."""
        return self.memory.head

    @property
    def tags(self) -> tuple[Approximation, ...]:
        """What of the answer is not exact, as of the last look."""
        try:
            return self._view.approximation(self.memory.query_id)
        except UnknownQuery:  # it is being replaced
            return ()

    async def snapshot(self) -> Answer:
        """The answer to begin with; the reader then stands behind it. Of the operator dstream: no rows.

        Raises UnknownQuery, QueryPaused, LimitExceeded.
        """
        view, name = self._view, self.memory.query_id
        answer = await self.run(lambda: view.snapshot(name, rows_max=self._rows_max))
        self.cursor = Cursor(answer.position, answer.now_ms, self._birth)
        return answer

    def rows(self, answer: Answer) -> pa.Table:
        """The rows that a feed begins with."""
        return answer.table.slice(0, 0) if self.memory.operator == "dstream" else answer.table

    def resume(self, since: str) -> None:
        """Go on from a position. Raises PositionRefused, MustRefetch."""
        self.cursor = Cursor.parse(since, self.memory.births, self._view.position)

    async def more(self) -> list[ChangeLines]:
        """What comes next; nothing where the reader knows all there is. Raises MustRefetch."""
        reading = self._hub.read(self.memory, self.cursor.position.sequence, ENTRIES_AT_ONCE)
        self._view, self._birth = reading.view, reading.birth
        if reading.entries is None:
            if reading.end is not None:
                self.end = reading.end
                return []
            return await self._again(reading.view)
        if not reading.entries:
            self.end = reading.end
        pieces = []
        for entry in reading.entries:
            await self._encoded(entry)
            pieces.append(ChangeLines(entry.lines, entry.cursor, entry.rows, entry.told.at_s))
        if pieces:
            self.cursor = pieces[-1].cursor
        return pieces

    def progress(self) -> Cursor:
        """Where the reader is, when :meth:`more` has just found nothing. It stays there while its query is
        paused, or set apart.
        """
        name = self.memory.query_id
        standing = self._view.standing.get(name)
        if (standing is not None and standing.paused) or name in self._view.apart:
            return self.cursor
        try:
            now_ms = self._view.now_ms(self.memory.query_id)
        except UnknownQuery:  # it is being replaced
            return self.cursor
        self.cursor = Cursor(self._view.position, now_ms, self._birth)
        return self.cursor

    async def run(self, work: Callable[[], Found]) -> Found:
        """Do it in a thread of the pool."""
        return await self._pool.do(work)

    async def _encoded(self, entry: Entry) -> None:
        told: Told = entry.told
        if told.is_encoded:
            return
        if told.rows <= ENCODED_AT_ONCE:
            self._hub.encode(told)
        else:
            await self.run(lambda: self._hub.encode(told))

    async def _again(self, view: View) -> list[ChangeLines]:
        """All that changed between the reader's position and a view, from retained rows."""
        name, since_ms, birth = self.memory.query_id, self.cursor.now_ms, self._birth
        if self.cursor.birth != birth:
            raise MustRefetch(hint=ALTERED_HINT)  # what the text was is not kept

        def work() -> tuple[tuple[bytes, ...], Cursor, int]:
            cursor = Cursor(view.position, view.now_ms(name), birth)
            if cursor.now_ms is None:
                return (), cursor, 0
            before = self.cursor.position.sequence < self._history(view.standing[name].sources)
            if before and self.memory.operator != "istream":
                raise MustRefetch()  # rows from before its windows' beginning came back since
            tags = view.approximation(name)
            changes = view.changes(name, since_ms, self._rows_max)
            texts = change_texts(changes.table, changes.weights, changes.at_ms)
            return tuple(change_lines(texts, cursor, tags)), cursor, len(texts)

        try:
            lines, cursor, rows = await self.run(work)
        except (InstantOutOfRange, LimitExceeded, NotSupported) as gone:
            raise MustRefetch() from gone
        except UnknownQuery:
            self.end = FeedEnd("unregistered")
            return []
        except QueryPaused:  # once it runs again
            return []
        self.cursor = cursor
        return [ChangeLines(lines, cursor, rows)] if rows else []


def line_starts(rows: int) -> range:
    """Where the lines of so many rows begin; there is at least one line."""
    return range(0, max(rows, 1), LINE_ROWS)
