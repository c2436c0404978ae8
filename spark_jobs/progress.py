"""How far a job is, on stderr: one line that changes on a terminal, a line now and then elsewhere.

A stream hands its figures over after each micro-batch (:func:`shown`). A batch waits for Spark, so another
thread asks Spark how far it is (:func:`told_meanwhile`), and only where no bar of Spark's own shows that.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.status import Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN_EVERY_S = 10.0
RATE_OVER_S = 10.0
LONG_S = 3.0
"""A micro-batch that takes longer is said to be at work."""
ENDED_MAX_S = 5.0
"""How long the end of a run waits for a line that is being made."""


@dataclass(slots=True)
class Figures:
    """What the line is made of. lag: rows that are there and were not read; None: not known.

    waiting: what the job waits for, instead of working. began_s: when the micro-batch at hand began; None
    between two.
    """

    job: str
    rows: int = 0
    batches: int = 0
    batch: int | None = None
    batch_ms: int | None = None
    lag: int | None = None
    waiting: str | None = None
    began_s: float | None = None
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, batch: int, rows: int, batch_ms: int, now_s: float) -> None:
        """A batch is done."""
        self.rows += rows
        self.batches += 1
        self.batch = batch
        self.batch_ms = batch_ms
        self.waiting = None
        self.began_s = None
        self._recent.append((now_s - batch_ms / 1000, rows))

    def rows_per_s(self, now_s: float) -> float:
        """Rows per second of the batches that began within the last RATE_OVER_S seconds."""
        while self._recent and self._recent[0][0] < now_s - RATE_OVER_S:
            self._recent.popleft()
        if not self._recent:
            return 0.0
        return sum(rows for _, rows in self._recent) / max(now_s - self._recent[0][0], 0.001)

    def line(self, now_s: float) -> str:
        """It in words."""
        parts = [f"{self.job}: {self.rows:,} rows"]
        if self.waiting is not None:
            return f"{parts[0]}, waiting: {self.waiting}"
        working = None
        if self.began_s is not None and now_s - self.began_s >= LONG_S:
            working = f"at work on the {'first' if self.batch is None else 'next'} micro-batch"
            working += f" for {now_s - self.began_s:,.0f} s"
        if self.batch is None:
            return f"{parts[0]}, {working or 'no micro-batch is done yet'}"
        parts.append(f"{self.rows_per_s(now_s):,.0f} rows/s")
        parts.append(f"batch {self.batch:,} in {self.batch_ms:,} ms")
        if self.lag is not None:
            parts.append(f"{self.lag:,} behind")
        if working is not None:
            parts.append(working)
        return ", ".join(parts)


Show = Callable[[Figures], None]


@contextmanager
def shown(console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> Iterator[Show]:
    """What shows figures, as often as they are handed over. console: stderr unless told."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        with Status("starting", console=console) as status:
            yield lambda figures: status.update(figures.line(clock()))
        return
    told: tuple[str | None, int] | None = None
    told_s = clock()

    def plain(figures: Figures) -> None:
        nonlocal told, told_s
        now_s = clock()
        state = (figures.waiting, figures.batches)
        working = figures.began_s is not None and now_s - figures.began_s >= PLAIN_EVERY_S
        changed = figures.waiting != (None if told is None else told[0])
        if changed or ((state != told or working) and now_s - told_s >= PLAIN_EVERY_S):
            console.print(figures.line(now_s), markup=False)
            told, told_s = state, now_s

    yield plain


@dataclass(frozen=True, slots=True)
class Tasks:
    """What Spark is at: tasks of the stages that run, done of all, and rows that they have read.

    Spark counts a task's rows every few seconds while it runs, and all of them at its end.
    """

    done: int = 0
    of: int = 0
    rows: int = 0

    def line(self, job: str, seconds: float) -> str:
        """It in words."""
        parts = [f"{job}: at work for {seconds:,.0f} s"]
        if self.of:
            parts.append(f"{self.done:,} of {self.of:,} task{'' if self.of == 1 else 's'} of this stage done")
        if self.rows:
            parts.append(f"{self.rows:,} row{'' if self.rows == 1 else 's'} read")
        return ", ".join(parts)


def tasks(session: SparkSession) -> Tasks:
    """Count the tasks of the stages that run now. Raises what Py4J raises where Spark has ended."""
    context: Any = session.sparkContext
    stages = context._jsc.sc().statusStore().activeStages()
    done = of = rows = 0
    for number in range(stages.size()):
        one = stages.apply(number)
        done += one.numCompleteTasks()
        of += one.numTasks()
        rows += one.inputRecords() + one.shuffleReadRecords()
    return Tasks(done, of, rows)


@contextmanager
def told_meanwhile(
    job: str,
    so_far: Callable[[], Tasks],
    console: Console | None = None,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
) -> Iterator[None]:
    """Within, a line every :data:`PLAIN_EVERY_S` where stderr is no terminal, by a thread of its own.

    so_far: asked for each line; what it raises ends the lines, not the run. wait: for the end, at most so
    many seconds; whether it has come.
    """
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        yield
        return
    began_s = clock()
    ended = threading.Event()

    def tell() -> None:
        while not wait(ended, PLAIN_EVERY_S):
            try:
                line = so_far().line(job, clock() - began_s)
            except Exception:  # noqa: BLE001 - Spark is gone or going; the run itself tells why
                return
            if not ended.is_set():
                console.print(line, markup=False)

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join(ENDED_MAX_S)
