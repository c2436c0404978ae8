"""What feeds read from: the recent changes of followed queries, all in one ring.

A query's memory is complete from a step on (``since``): a reader that knows the answer after that step, or a
later one, misses nothing. The ring is bounded in bytes and in time over all queries together; what it lets
go of moves ``since`` of the queries it was of. Changes are turned into lines of JSON once, when the first
feed wants them, and are the same bytes for all feeds; until then they stay as the engine told them.

Not thread-safe but for :meth:`Told.encode`; the hub's lock is around it. Cost: O(1) a followed query that
changed, to put in and to let go; O(log entries) to find a reader's place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Literal

import numpy as np
import pyarrow as pa

from broker.base.cursor import Birth, Cursor
from broker.feeds.lines import change_lines, change_texts
from engine.changes.transition import NEVER
from engine.model.approximation import Approximation
from engine.model.changes import Changes, Operator
from engine.model.step import Position
from tureen.errors import TureenError

ENTRY_BYTES = 400
"""What an entry takes besides its lines."""

COMPACTED = 64

BIRTHS_MAX = 64
"""A position from before so many alterations is no longer known."""

EndReason = Literal["caught_up", "unregistered", "stopping", "must_refetch", "failed"]


@dataclass(frozen=True, slots=True)
class FeedEnd:
    """Why a query is followed no more."""

    reason: EndReason
    error: TureenError | None = None


@dataclass(slots=True, eq=False)
class Entry:
    """What one step changed in one answer. tags: what of the answer is not exact. lines: JSON, each with its
    line feed; empty until encoded.
    """

    memory: RecentChanges
    cursor: Cursor
    told: Told
    rows: int
    tags: tuple[Approximation, ...] = ()
    lines: tuple[bytes, ...] = ()

    @property
    def sequence(self) -> int:
        return self.cursor.position.sequence

    @property
    def size(self) -> int:
        return sum(map(len, self.lines))


@dataclass(slots=True, eq=False)
class RecentChanges:
    """Holds the recent changes of one followed query.

    since: the sequence number of the step after which it is complete; None before following has begun.
    births: the registration, then the last alterations that its feeds continue through. head: the members
    of a feed's first line that tell columns and operator. end: why it is followed no more.
    """

    query_id: str
    shard: int
    since: int | None = None
    births: list[Birth] = field(default_factory=list)
    operator: Operator = "changes"
    head: bytes = b""
    end: FeedEnd | None = None
    _entries: list[Entry] = field(default_factory=list)
    _first: int = 0

    def __len__(self) -> int:
        return len(self._entries) - self._first

    def after(self, sequence: int, most: int) -> list[Entry] | None:
        """What came after a step, oldest first, at most so many; None where that is not known any more."""
        if self.since is None or sequence < self.since:
            return None
        entries = self._entries
        if len(entries) == self._first or entries[-1].sequence <= sequence:
            return []
        place = bisect_right(entries, sequence, self._first, key=_sequence)
        return entries[place : place + most]

    @property
    def birth(self) -> Birth | None:
        """The last of its births."""
        return self.births[-1] if self.births else None

    def alter(self, sequence: int) -> None:
        """The step of this number gave the query another text; its feeds continue."""
        self.births = [*self.births, replace(self.births[-1], sequence=sequence)][-BIRTHS_MAX:]

    def put(self, entry: Entry) -> None:
        self._entries.append(entry)

    def drop(self, entry: Entry) -> None:
        """Let go of the oldest entry, which this is; of none where the query is followed no more."""
        if self._first == len(self._entries) or self._entries[self._first] is not entry:
            return
        self.since = entry.sequence
        self._first += 1
        if self._first >= COMPACTED and self._first * 2 >= len(self._entries):
            del self._entries[: self._first]
            self._first = 0

    def clear(self) -> None:
        self._entries, self._first = [], 0


def _sequence(entry: Entry) -> int:
    return entry.cursor.position.sequence


Part = tuple[int, int, int]
"""Which of a step's Changes, and its rows from there to there."""


class Told:
    """What one step changed in the answers of followed queries; first as told, then as lines."""

    __slots__ = ("_changes", "_encoding", "_parts", "at_s", "dropped", "entries", "size")

    def __init__(
        self,
        position: Position,
        changes: Sequence[Changes],
        followed: Mapping[str, RecentChanges],
        at_s: float,
    ) -> None:
        """Takes what is of followed queries; where nothing is, it has no entries. at_s: when it was told."""
        self.entries: list[Entry] = []
        self.at_s = at_s
        self.dropped = False
        self._encoding = Lock()
        self._parts: list[list[Part]] = []
        kept: list[_Rows] = []
        places: dict[str, int] = {}
        for one in changes:
            if one.occasion != "step":
                continue
            mine = _followed(one, followed)
            if not mine:
                continue
            rows, starts = _rows(one, mine)
            for number, start in zip(mine, starts, strict=True):
                query_id = one.query_ids[number]
                count = int(one.starts[number + 1] - one.starts[number])
                place = places.get(query_id)
                memory = followed[query_id]
                assert memory.birth is not None
                now_ms = int(one.now_ms[number]) if one.now_ms[number] != NEVER else None
                if place is None:
                    place = places[query_id] = len(self.entries)
                    cursor = Cursor(position, now_ms, memory.birth)
                    tags = one.approximation.get(query_id, ())
                    self.entries.append(Entry(memory, cursor, self, 0, tags))
                    self._parts.append([])
                self.entries[place].rows += count
                self._parts[place].append((len(kept), start, start + count))
            kept.append(rows)
        self._changes: list[_Rows] | None = kept
        self.size = sum(rows.size for rows in kept) + ENTRY_BYTES * len(self.entries)

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self.entries)

    @property
    def is_encoded(self) -> bool:
        return self._changes is None

    def encode(self) -> None:
        """Make the lines of all its entries. Any thread; the second time nothing."""
        with self._encoding:
            if self._changes is None:
                return
            texts = [change_texts(rows.table, rows.weights, rows.at_ms) for rows in self._changes]
            for entry, parts in zip(self.entries, self._parts, strict=True):
                mine = [text for number, start, stop in parts for text in texts[number][start:stop]]
                entry.lines = tuple(change_lines(mine, entry.cursor, entry.tags))
            self._changes, self._parts = None, []

    def encoded_size(self) -> int:
        return sum(entry.size for entry in self.entries) + ENTRY_BYTES * len(self.entries)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of changes. size: bytes that they hold on to."""

    table: pa.Table
    weights: np.ndarray
    at_ms: np.ndarray

    @property
    def size(self) -> int:
        return int(self.table.nbytes) + 9 * int(self.table.num_rows)


def _followed(changes: Changes, followed: Mapping[str, RecentChanges]) -> list[int]:
    """Which of its queries are followed here and changed."""
    starts = changes.starts
    return [
        number
        for number, query_id in enumerate(changes.query_ids)
        if (memory := followed.get(query_id)) is not None
        and memory.since is not None
        and starts[number + 1] > starts[number]
    ]


def _rows(changes: Changes, mine: Sequence[int]) -> tuple[_Rows, list[int]]:
    """Rows, and where those of each begin in them; a copy where most are nobody's, so that these can go."""
    starts, stops = changes.starts[mine], changes.starts[np.asarray(mine) + 1]
    counts = stops - starts
    if 2 * int(counts.sum()) >= len(changes):
        return _Rows(changes.table, changes.weights, changes.at_ms), starts.tolist()
    begins = np.concatenate([[0], np.cumsum(counts)])
    taken = np.arange(begins[-1]) + np.repeat(starts - begins[:-1], counts)
    rows = _Rows(changes.table.take(pa.array(taken)), changes.weights[taken], changes.at_ms[taken])
    return rows, begins[:-1].tolist()


class Ring:
    """All that is told and not let go of yet, oldest first: what came last whatever its size, so that readers
    who keep up get it, and before it as much as there is room for.
    """

    def __init__(self, bytes_max: int, keep_s: float) -> None:
        self._bytes_max = bytes_max
        self._keep_s = keep_s
        self._told: deque[Told] = deque()
        self.size = 0

    def put(self, told: Told) -> None:
        """Keep it, and let go of what there is no room for besides."""
        for entry in told.entries:
            entry.memory.put(entry)
        self._told.append(told)
        self.size += told.size
        self._make_room()

    def encoded(self, told: Told) -> None:
        """It has lines now, which take more room or less."""
        if not told.dropped:
            size = told.encoded_size()
            self.size += size - told.size
            told.size = size
            self._make_room()

    def expire(self, now_s: float) -> None:
        """Let go of what is old."""
        while self._told and self._told[0].at_s < now_s - self._keep_s:
            self._drop()

    def _make_room(self) -> None:
        while self.size > self._bytes_max and len(self._told) > 1:
            self._drop()

    def _drop(self) -> None:
        told = self._told.popleft()
        told.dropped = True
        self.size -= told.size
        for entry in told.entries:
            entry.memory.drop(entry)

    def _check(self, memories: Iterable[RecentChanges]) -> None:
        """Assert what is promised."""
        assert self.size == sum(told.size for told in self._told)
        assert self.size <= self._bytes_max or len(self._told) == 1
        kept = {id(entry) for told in self._told for entry in told.entries}
        for memory in memories:
            mine = memory._entries[memory._first :]
            assert all(id(entry) in kept for entry in mine)
            sequences = [entry.sequence for entry in mine]
            assert sequences == sorted(set(sequences))
            assert not sequences or (memory.since is not None and memory.since < sequences[0])
