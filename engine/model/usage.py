"""What an entity of the engine used and moved since it came, and the stopwatch that measures it.

Times are *exclusive*: while an operator waits for one below it, that one's time runs. So the times of all
entities add up to the time that was measured, and nothing is counted twice.

    watch.enter(join)       join runs
    watch.enter(scan)       scan runs, join waits
    watch.leave()           join runs
    watch.leave()

Many short visits would cost more to measure than they take, so the operators of a graph are measured in one
transition of :data:`PERIOD`; the time of the others, which is measured as a whole, is divided among them as
that of the last one was (:class:`Laps`). The clock comes from whoever owns the engine and has no part in
answers.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

Clock = Callable[[], int]
"""Nanoseconds of computing time, from any beginning."""

PERIOD = 8
"""One in so many transitions of a graph is measured operator by operator."""


class Usage:
    """Counts of one entity; they only grow.

    cpu_ns: time that was spent in it alone. rows, bytes: what went into it and what it gave; bytes as they
    are held in memory.
    """

    __slots__ = ("bytes_in", "bytes_out", "cpu_ns", "rows_in", "rows_out")

    def __init__(self) -> None:
        self.cpu_ns = 0.0
        self.rows_in = self.rows_out = 0
        self.bytes_in = self.bytes_out = 0

    @property
    def selectivity(self) -> float | None:
        """Rows out of rows in; None where none came."""
        return self.rows_out / self.rows_in if self.rows_in else None

    @property
    def cost_ns(self) -> float | None:
        """Computing time per row that comes in, in ns; None where none came."""
        return self.cpu_ns / self.rows_in if self.rows_in else None


class Stopwatch:
    """Divides the time of one thread among entities. Without a clock it measures nothing and costs little."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock
        self._running: list[Usage] = []
        self._since = 0
        self._visit = _Visit(self)

    def enter(self, usage: Usage) -> None:
        """An entity runs; the one that ran waits until :meth:`leave`."""
        if self.clock is None:
            return
        now = self.clock()
        if self._running:
            self._running[-1].cpu_ns += now - self._since
        self._running.append(usage)
        self._since = now

    def leave(self) -> None:
        """The entity that runs is done, and the one before goes on."""
        if self.clock is None:
            return
        now = self.clock()
        self._running.pop().cpu_ns += now - self._since
        self._since = now

    def on(self, usage: Usage) -> _Visit:
        """An entity runs, until the block that this is the context of is left."""
        self.enter(usage)
        return self._visit


class _Visit:
    """Ends the visit that began last. A generator in its place would cost a step of few rows a fiftieth."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.leave()


class Laps:
    """The times of a graph's operators: measured one by one in some transitions, divided in the others."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._count = 0
        self._owed_ns = 0
        """Time of the transitions since the last one that was measured one by one, with that at hand."""
        self._began = 0
        self._lap = Stopwatch()
        self._laps: dict[int, tuple[Usage, Usage]] = {}
        """By the id of an entity's usage: it, and its part of the transition at hand."""

    def begin(self) -> Laps | None:
        """A transition begins; itself where operators are to be measured in it."""
        if self._clock is None:
            return None
        self._began = self._clock()
        self._count += 1
        if self._count % PERIOD != 1:
            return None
        self._lap, self._laps = Stopwatch(self._clock), {}
        return self

    def enter(self, usage: Usage) -> None:
        """An operator runs, as :meth:`Stopwatch.enter` has it."""
        lap = self._laps.get(id(usage))
        if lap is None:
            lap = self._laps[id(usage)] = usage, Usage()
        self._lap.enter(lap[1])

    def leave(self) -> None:
        """The operator is done, as :meth:`Stopwatch.leave` has it."""
        self._lap.leave()

    def end(self) -> None:
        """The transition is over. What was not measured in an operator is divided as what was."""
        if self._clock is None:
            return
        self._owed_ns += self._clock() - self._began
        if not self._laps:
            return
        measured = sum(lap.cpu_ns for _, lap in self._laps.values())
        if measured > 0:
            for usage, lap in self._laps.values():
                usage.cpu_ns += lap.cpu_ns * self._owed_ns / measured
            self._owed_ns = 0
        self._laps = {}
