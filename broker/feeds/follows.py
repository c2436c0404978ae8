"""Which queries are followed, as the event loop sees it.

Following begins with the first that watches a query, in the thread of its shard between two steps, and ends
some time after the last has gone, so that one who polls, or whose connection broke, finds what came
meanwhile. Those that begin at the same time ask a shard together. Runs on the event loop alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from broker.base import logs
from broker.feeds.hub import Hub
from broker.feeds.memory import RecentChanges
from broker.node.node import Node
from engine.engine import Engine
from tureen.errors import BrokerUnavailable, TureenError

log = logs.get()


WOKEN_AT_ONCE = 64


class Watcher(Protocol):
    """Who wants to know that there is something new."""

    def wake(self) -> None: ...


class Follows:
    """Has queries followed for as long as they are watched, and wakes who watches."""

    def __init__(self, node: Node, hub: Hub, linger_s: float) -> None:
        """linger_s: how long a query is followed when nobody watches it any more."""
        self._node = node
        self._hub = hub
        self._linger_s = linger_s
        self._watchers: dict[RecentChanges, dict[Watcher, None]] = {}
        self._idle: dict[RecentChanges, float] = {}
        self._asleep: dict[Watcher, None] = {}
        self._coming: dict[RecentChanges, asyncio.Future[None]] = {}
        self._asking: dict[int, list[RecentChanges]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def follow(self, query_id: str, shard: int, watcher: Watcher) -> RecentChanges:
        """The memory of a query that is followed from now on, at the latest; ``watcher`` is woken with it.

        Raises UnknownQuery, BrokerUnavailable.
        """
        memory = self._hub.memory(query_id)
        if memory is None:
            memory = RecentChanges(query_id, shard)
            self._hub.add(memory)
            self._coming[memory] = asyncio.get_running_loop().create_future()
            if shard not in self._asking:
                self._asking[shard] = []
                self._spawn(shard)
            self._asking[shard].append(memory)
        self._watchers.setdefault(memory, {})[watcher] = None
        self._idle.pop(memory, None)
        try:
            coming = self._coming.get(memory)
            if coming is not None:
                await asyncio.shield(coming)
            if memory.shard != shard:
                raise BrokerUnavailable("the query is being replaced", hint="try again in a second")
        except BaseException:
            self.leave(memory, watcher)
            raise
        return memory

    def leave(self, memory: RecentChanges, watcher: Watcher) -> None:
        """It watches no more."""
        watchers = self._watchers.get(memory)
        if watchers is None or watchers.pop(watcher, self) is self or watchers:
            return
        del self._watchers[memory]
        if memory.end is None and memory.since is not None:
            self._idle[memory] = asyncio.get_running_loop().time()

    def wake(self) -> None:
        """Tell those who watch what the hub has something new for."""
        for memory in self._hub.touched():
            self.rouse(self._watchers.get(memory, ()))
            if memory.end is not None:
                self._idle.pop(memory, None)

    def rouse(self, watchers: Iterable[Watcher]) -> None:
        """Wake them, so many in a turn of the event loop: others have their turn in between."""
        if not self._asleep:
            asyncio.get_running_loop().call_soon(self._rouse)
        self._asleep.update(dict.fromkeys(watchers))

    def _rouse(self) -> None:
        for _ in range(min(WOKEN_AT_ONCE, len(self._asleep))):
            watcher = next(iter(self._asleep))
            del self._asleep[watcher]
            watcher.wake()
        if self._asleep:
            asyncio.get_running_loop().call_soon(self._rouse)

    def sweep(self) -> None:
        """To be called about once a second."""
        self._hub.expire()
        until_s = asyncio.get_running_loop().time() - self._linger_s
        left: dict[int, list[RecentChanges]] = {}
        for memory, since_s in self._idle.items():
            if since_s > until_s:
                break  # in the order in which they were left
            left.setdefault(memory.shard, []).append(memory)
        for shard, memories in left.items():
            for memory in memories:
                del self._idle[memory]
            self._hub.forget(memories)
            self._spawn(shard, memories)

    # --- questions to shards ----------------------------------------------------------------------

    def _spawn(self, shard: int, leaving: Sequence[RecentChanges] = ()) -> None:
        task = asyncio.get_running_loop().create_task(
            self._unfollow(shard, leaving) if leaving else self._begin(shard)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, shard: int) -> None:
        """Have followed whatever waits for it at a shard, all that comes meanwhile with the next question."""
        await asyncio.sleep(0)  # those of this turn of the loop ask together
        while memories := self._asking[shard]:
            self._asking[shard] = []
            try:
                found = await self._node.shards.ask(shard, partial(self._begun, memories))
            except TureenError as refused:
                found = dict.fromkeys(memories, refused)
            except Exception as defect:  # whoever waits must hear of it
                log.error("follow_failed", shard=shard, error=repr(defect), exc_info=defect)
                found = dict.fromkeys(memories, TureenError("the broker failed; see its log"))
            self._hub.forget(memory for memory in memories if memory in found)
            for memory in memories:
                coming, refusal = self._coming.pop(memory), found.get(memory)
                if refusal is None:
                    coming.set_result(None)
                    if memory not in self._watchers:
                        self._idle[memory] = asyncio.get_running_loop().time()
                else:
                    coming.set_exception(refusal)
                    coming.exception()  # its watchers may have gone
        del self._asking[shard]

    def _begun(self, memories: Sequence[RecentChanges], engine: Engine) -> dict[RecentChanges, TureenError]:
        """Follow them, in the shard's thread; those that cannot be, and why. A paused query is followed
        in silence until it runs again.
        """
        view = self._node.shards[memories[0].shard].told(engine.view())
        refused: dict[RecentChanges, TureenError] = {}
        for memory in memories:
            try:
                engine.follow(memory.query_id)
                self._hub.begin(memory, view, self._node.shards[memory.shard].life)
            except TureenError as refusal:
                refused[memory] = refusal
        return refused

    async def _unfollow(self, shard: int, memories: Sequence[RecentChanges]) -> None:
        def work(engine: Engine) -> None:
            for memory in memories:
                engine.unfollow(memory.query_id)

        try:
            await self._node.shards.ask(shard, work)
        except TureenError as refused:  # the shard has stopped, or waits for Kafka: it costs work, no answer
            log.info("unfollow_failed", shard=shard, code=refused.code)
