"""How far a stream is, on stderr: one line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.status import Status

PLAIN_EVERY_S = 10.0
RATE_OVER_S = 10.0


@dataclass(slots=True)
class Figures:
    """What the line is made of. lag: rows that are there and were not read; None: not known.

    waiting: what the job waits for, instead of working.
    """

    job: str
    rows: int = 0
    batches: int = 0
    batch: int | None = None
    batch_ms: int | None = None
    lag: int | None = None
    waiting: str | None = None
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, batch: int, rows: int, batch_ms: int, now_s: float) -> None:
        """A batch is done."""
        self.rows += rows
        self.batches += 1
        self.batch = batch
        self.batch_ms = batch_ms
        self.waiting = None
        self._recent.append((now_s - batch_ms / 1000, rows))

    def rows_per_s(self, now_s: float) -> float:
        """Of the batches that began within the last seconds."""
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
        if self.batch is None:
            return f"{parts[0]}, nothing has come in yet"
        parts.append(f"{self.rows_per_s(now_s):,.0f} rows/s")
        parts.append(f"batch {self.batch:,} in {self.batch_ms:,} ms")
        if self.lag is not None:
            parts.append(f"{self.lag:,} behind")
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
        changed = figures.waiting != (None if told is None else told[0])
        if changed or (state != told and now_s - told_s >= PLAIN_EVERY_S):
            console.print(figures.line(now_s), markup=False)
            told, told_s = state, now_s

    yield plain
