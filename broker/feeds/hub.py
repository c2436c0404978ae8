"""The hub: where the shards' threads put changes of answers, and the event loop's feeds find them.

What a feed reads is one moment: the memory of its query and the shard's view belong together, because a
step's changes and the view after it come in under one lock. So whoever knows the answer after the step that
a memory is complete from, or sees the view that came with it, neither misses a change nor sees one twice.

A step that changes nothing that is followed wakes nobody; one that does schedules one call of the event
loop, for all queries that it touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from broker.base.cursor import ALTERED_HINT, Birth
from broker.feeds.lines import columns_head
from broker.feeds.memory import Entry, FeedEnd, RecentChanges, Ring, Told
from engine.model.changes import Changes
from engine.model.step import Position, StepResult
from engine.views.view import View
from tureen.errors import LimitExceeded, MustRefetch, TureenError, UnknownQuery


@dataclass(frozen=True, slots=True)
class FeedReading:
    """What a feed finds at one moment.

    view: the shard after its last step. birth: the registration, or its last alteration, that the view has.
    entries: the oldest changes that the feed does not know yet; None
    where there were some that are no longer kept. end: after these changes the query is followed no more.
    """

    view: View
    birth: Birth
    entries: list[Entry] | None
    end: FeedEnd | None


class Hub:
    """Memories of followed queries. Every method may be called by any thread unless it says otherwise."""

    def __init__(self, bytes_max: int, keep_s: float, wake: Callable[[], None]) -> None:
        """wake: called, by a shard's thread, when :meth:`touched` has something after it had nothing."""
        self._lock = Lock()
        self._ring = Ring(bytes_max, keep_s)
        self._memories: dict[str, RecentChanges] = {}
        self._views: dict[int, View] = {}
        self._touched: dict[RecentChanges, None] = {}
        self._wake = wake

    # --- the shards' threads ----------------------------------------------------------------------

    def committed(
        self, shard: int, view: View, results: Sequence[StepResult], touched: Collection[str]
    ) -> None:
        """As :class:`broker.shard.listener.Listener` says."""
        with self._lock:
            self._views[shard] = view
            if not self._memories:
                return
            before = len(self._touched)
            for result in results:
                for query_id in result.continued:
                    memory = self._mine(query_id, shard)
                    if memory is not None:
                        memory.alter(result.position.sequence)
                if result.changes:
                    self._keep(result)
                for query_id, error in result.broken.items():
                    memory = self._mine(query_id, shard)
                    if memory is not None:
                        self._end(memory, _broken(error))
                self._end_if_over(result.gone, shard, view)  # what a later step tells is of another text
            self._end_if_over(touched, shard, view)
            wakes = not before and bool(self._touched)
        if wakes:
            self._wake()

    def ended(self, shard: int, error: TureenError | None) -> None:
        """As :class:`broker.shard.listener.Listener` says."""
        end = FeedEnd("stopping") if error is None else FeedEnd("failed", error)
        with self._lock:
            for memory in [one for one in self._memories.values() if one.shard == shard]:
                self._end(memory, end)
            wakes = bool(self._touched)
        if wakes:
            self._wake()

    def begin(self, memory: RecentChanges, view: View, life: str) -> None:
        """Following begins, in the thread of the query's shard between two steps. Raises UnknownQuery.

        life: of the shard's journal. What will have changed when a paused query runs again is not told, so
        its memory is complete from behind the positions of its readers on: they work it out.
        """
        info = view.query(memory.query_id)
        columns = view.standing[memory.query_id].query.columns
        with self._lock:
            self._views[memory.shard] = view
            memory.births = [Birth(memory.query_id, memory.shard, info.born.sequence, life)]
            memory.operator = view.output(memory.query_id).operator
            memory.head = columns_head(columns, memory.operator)
            memory.since = view.position.sequence + info.paused

    def _keep(self, result: StepResult) -> None:
        """What the step changed. Of what earlier ones changed, of queries that rejoin, that is left out which
        no reader needs: all know the answer after it.
        """
        of: dict[Position | None, list[Changes]] = {}
        for changes in result.changes:
            of.setdefault(changes.position, []).append(changes)
        for position, some in of.items():
            memories: Mapping[str, RecentChanges] = self._memories
            if position is not None:
                memories = {
                    name: memory
                    for changes in some
                    for name in changes.query_ids
                    if (memory := self._memories.get(name)) is not None
                    and memory.since is not None
                    and memory.since < position.sequence
                }
            told = Told(position or result.position, some, memories, time.monotonic())
            if told.entries:
                self._ring.put(told)
                self._touched.update(dict.fromkeys(entry.memory for entry in told.entries))

    def _mine(self, query_id: str, shard: int) -> RecentChanges | None:
        memory = self._memories.get(query_id)
        if memory is None or memory.shard != shard or memory.since is None:
            return None
        return memory

    def _end_if_over(self, query_ids: Iterable[str], shard: int, view: View) -> None:
        for query_id in query_ids:
            memory = self._mine(query_id, shard)
            end = None if memory is None else _ended(memory, view)
            if memory is not None and end is not None:
                self._end(memory, end)

    def _end(self, memory: RecentChanges, end: FeedEnd) -> None:
        memory.end = end
        if self._memories.get(memory.query_id) is memory:
            del self._memories[memory.query_id]
        self._touched[memory] = None

    # --- the event loop ---------------------------------------------------------------------------

    def memory(self, query_id: str) -> RecentChanges | None:
        """That of a query which is followed, or soon will be."""
        with self._lock:
            return self._memories.get(query_id)

    def add(self, memory: RecentChanges) -> None:
        """Make room for a query; nothing is kept before :meth:`begin`."""
        with self._lock:
            self._memories[memory.query_id] = memory

    def forget(self, memories: Iterable[RecentChanges]) -> None:
        """Nobody wants these any more."""
        with self._lock:
            for memory in memories:
                if self._memories.get(memory.query_id) is memory:
                    del self._memories[memory.query_id]
                memory.since = None
                memory.clear()

    def touched(self) -> list[RecentChanges]:
        """Memories with something new, each once."""
        with self._lock:
            found = list(self._touched)
            self._touched.clear()
        return found

    def read(self, memory: RecentChanges, sequence: int, most: int) -> FeedReading:
        """What came after a step, at most so many entries at once."""
        with self._lock:
            entries = memory.after(sequence, most)
            assert memory.birth is not None
            return FeedReading(self._views[memory.shard], memory.birth, entries, memory.end)

    def encode(self, told: Told) -> None:
        """Make lines of it."""
        told.encode()
        with self._lock:
            self._ring.encoded(told)

    def expire(self) -> None:
        """Let go of what is old."""
        with self._lock:
            self._ring.expire(time.monotonic())

    @property
    def followed(self) -> int:
        return len(self._memories)

    @property
    def size(self) -> int:
        """Bytes of changes that are kept."""
        return self._ring.size


def _ended(memory: RecentChanges, view: View) -> FeedEnd | None:
    """Why a query cannot be followed any more after it was registered again, changed or removed."""
    try:
        info = view.query(memory.query_id)
    except UnknownQuery:
        return FeedEnd("unregistered")
    if memory.birth is not None and info.born.sequence != memory.birth.sequence:
        return FeedEnd("must_refetch", MustRefetch(hint=ALTERED_HINT))
    return None


def _broken(error: Exception) -> FeedEnd:
    if isinstance(error, LimitExceeded):
        return FeedEnd("must_refetch", error)
    known = (
        error if isinstance(error, TureenError) else TureenError(f"its changes could not be given: {error!r}")
    )
    return FeedEnd("failed", known)
