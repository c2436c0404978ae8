"""Whose turn it is: of the streams of a shard that have records, the one whose next batch becomes a step.

The engine's scheduler decides (:mod:`engine.overload.scheduler`). A stream is a module there, its queue what
waits in its buffer, and running it is a step: rows come in, pass the filters and joins, and all that follows
them is told. So its chart has one segment: bytes that leave the buffer in a ns of work. In event
time the order in which streams take their steps changes neither answers nor what is told of them.

Clocks are passed in, in nanoseconds. O(log streams) a turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.engine import Engine
from engine.overload.scheduled_module import WaitingBatch
from engine.overload.scheduler import Scheduler

MS = 1_000_000
"""In ns."""


def module_of(stream: str) -> str:
    """The name of a stream's module."""
    return f"source/{stream}"


@dataclass(frozen=True, slots=True)
class StreamQueue:
    """What waited of a stream when turns were last decided, since when (ns, of the clock of turns;
    None: nothing waits), and the time its steps took in all.
    """

    rows: int
    nbytes: int
    since_ns: float | None
    spent_ns: float


class Turns:
    """Decides which stream of one shard has the next turn. What waits keeps its place in the order of coming
    until all of it was taken.
    """

    def __init__(self) -> None:
        self._came: dict[str, tuple[int, int]] = {}
        """By stream: the number of what waits in order of coming, and since when it waits, in ns."""
        self._offered: set[str] = set()
        """Streams of which something may stand in the scheduler."""
        self._streams: dict[str, None] = {}
        """Streams that ever had something."""
        self._number = 0

    def begin(self, engine: Engine, ready: Iterable[str]) -> None:
        """A transaction begins. ready: streams of which something waits, whether it may be taken or not."""
        there = set(ready)
        self._came = {name: came for name, came in self._came.items() if name in there}
        for stream in self._offered:
            name = module_of(stream)
            while name in engine.scheduler and engine.scheduler[name].queue:
                engine.scheduler.take(engine.scheduler[name])
        self._offered.clear()

    def offer(self, engine: Engine, stream: str, rows: int, nbytes: int, now_ns: int) -> None:
        """Note that so much waits of a stream, and may be taken."""
        if stream not in self._came:
            self._number += 1
            self._came[stream] = self._number, now_ns
        origin, since_ns = self._came[stream]
        scheduler, name, deadline_ns = engine.scheduler, module_of(stream), None
        if name not in scheduler:
            scheduler.add(name)
        if scheduler.asks_demand:
            demand = engine.needs.demand(stream)
            scheduler.weigh(name, demand.weight)
            if demand.latency_ms_max is not None:
                deadline_ns = since_ns + demand.latency_ms_max * MS
        self._offered.add(stream)
        self._streams[stream] = None
        scheduler.put(name, WaitingBatch(origin, max(1, nbytes), rows, since_ns, deadline_ns))

    def next(self, scheduler: Scheduler, now_ns: int) -> str | None:
        """The stream whose turn it is, to be offered again if something is left; None: nothing waits."""
        module = scheduler.choose(now_ns)
        if module is None:
            return None
        scheduler.take(module)
        return module.name.removeprefix("source/")

    def queues(self, scheduler: Scheduler) -> list[tuple[str, StreamQueue]]:
        """By stream. Any thread: a stream that comes meanwhile may be left out."""
        found = []
        for stream in list(self._streams):
            module = scheduler.get(module_of(stream))
            if module is not None:
                since_ns = next((batch.since for batch in list(module.queue)), None)
                queue = StreamQueue(module.rows, int(module.size), since_ns, module.spent)
                found.append((stream, queue))
        return found

    def ran(self, scheduler: Scheduler, stream: str, nbytes: int, spent_ns: int) -> None:
        """A step of so many bytes of a stream took so long. What is left of it came later."""
        self._came.pop(stream, None)
        module = module_of(stream)
        if module in scheduler:
            scheduler.done(scheduler[module], nbytes, spent_ns)
