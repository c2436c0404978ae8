"""The worker's memory against its budget, and what follows from it.

What is used is the larger of what the process holds by the kernel's word (anonymous pages, which nobody can
take back, and what of them was swapped out) and of what is counted (:mod:`broker.memory.accounts`). So
nothing uncounted grows unseen, and what is counted counts before its pages are touched.

The *level* says what is not done any more, and each includes those before it:

    level    from share   until below
    refuse   0.80         0.75    new registrations, CREATE STREAM and CREATE TABLE are refused
    relieve  0.90         0.85    the heaviest query is paused, one at a time (:mod:`broker.allotment.relief`)
    hold     0.95         0.90    no records are taken in
    shed     1.00         0.95    answers are refused

Used from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from broker.base import logs
from broker.memory.accounts import MemoryAccounts
from broker.memory.budget import Budget
from broker.memory.held import held_bytes, trim, trim_heap
from broker.memory.spill import Spill
from broker.runtime.liveness import Liveness
from tureen.errors import MIB, MemoryBudgetExceeded

LOOK_S = 0.05
"""What is used is looked at as often at most."""
FETCHED_PART = 64
FETCHED_KBYTES = (1_024, 65_536)
"""A stream's reader may fetch a 64th of the budget ahead, within these bounds."""
GRANTED_S = 0.5
"""Memory that was granted to an answer is held after so long at most."""
TRIM_S = 10.0
"""The allocator is asked for what it keeps as often at most, while memory is short."""

log = logs.get()


class Level(IntEnum):
    """How short memory is."""

    NORMAL = 0
    REFUSE = 1
    RELIEVE = 2
    HOLD = 3
    SHED = 4


SHARES = {
    Level.REFUSE: (0.80, 0.75),
    Level.RELIEVE: (0.90, 0.85),
    Level.HOLD: (0.95, 0.90),
    Level.SHED: (1.00, 0.95),
}
"""By level: the share of the budget that it begins at, and the one that it lasts down to."""

HINT = (
    "unregister queries or DROP streams, make windows or RETAIN shorter, or raise TUREEN_MEMORY_BUDGET_BYTES "
    "(and the machine's or cgroup's limit) and start again"
)


def level_after(before: Level, share: float) -> Level:
    """The level at a share of the budget, after another."""
    level = Level.NORMAL
    for one, (begins, ends) in SHARES.items():
        if share >= (ends if one <= before else begins):
            level = one
    return level


class Memory:
    """Watches how much memory a worker uses, and tells the level."""

    def __init__(
        self,
        budget: Budget,
        liveness: Liveness,
        held: Callable[[], int] = held_bytes,
        now_s: Callable[[], float] = time.monotonic,
        spill: Spill | None = None,
    ) -> None:
        """liveness: is told what is used. held: what the process holds, by the kernel's word.
        spill: takes rows that memory has no room for.
        """
        self.budget = budget
        self.level = Level.NORMAL
        self.accounts = MemoryAccounts(held())
        """What is counted."""
        self.spill = spill
        self._liveness = liveness
        self._held = held
        self._now_s = now_s
        self._lock = threading.Lock()
        self._used = 0
        self._looked_s = -1.0
        self._trimmed_s = now_s()
        self._granted: list[tuple[float, int]] = []

    @property
    def used(self) -> int:
        """Bytes, as of the last look."""
        self.look()
        return self._used

    def look(self, *, again: bool = False) -> Level:
        """The level now. again: however short ago the last look was."""
        now_s = self._now_s()
        if not again and now_s - self._looked_s < LOOK_S:
            return self.level
        held, counted = self._held(), sum(self.accounts.structures().values())
        with self._lock:
            self._looked_s = now_s
            self._used = max(held, counted)
            self._liveness.note_memory(self._used, self.budget.budget_bytes)
            before = self.level
            self.level = level_after(before, self._used / self.budget.budget_bytes)
            trims = self.level and now_s - self._trimmed_s >= TRIM_S
            if trims:
                self._trimmed_s = now_s
        if self.level != before:
            say = log.warning if self.level > before else log.info
            say(
                "memory_level",
                now=self.level.name.lower(),
                before=before.name.lower(),
                used_bytes=self._used,
                held_bytes=held,
                counted_bytes=counted,
                budget_bytes=self.budget.budget_bytes,
            )
        if trims:
            trim()
        return self.level

    @property
    def fetched_kbytes(self) -> int:
        """How much a stream's reader may hold of records that no step has taken in."""
        return min(
            FETCHED_KBYTES[1], max(FETCHED_KBYTES[0], self.budget.budget_bytes // FETCHED_PART // 1024)
        )

    # --- what follows -----------------------------------------------------------------------------

    def error(self, what: str) -> MemoryBudgetExceeded:
        """The refusal of something, as of the last look."""
        return MemoryBudgetExceeded(what, self._used, self.budget.budget_bytes, hint=self._hint())

    def require_room(self, nbytes: int) -> None:
        """Raise MemoryBudgetExceeded where so many bytes more would have queries paused. What was granted a
        moment ago counts, since it may not be held yet.
        """
        if self._grants(nbytes):
            return
        trim_heap()  # what was freed a moment ago may still be held
        if self._grants(nbytes):
            return
        raise MemoryBudgetExceeded(
            f"the answer is not worked out, which takes about {nbytes / MIB:,.0f} MiB more",
            self._used,
            self.budget.budget_bytes,
            hint="narrow the window or the predicate, ask for fewer columns, or raise "
            "TUREEN_MEMORY_BUDGET_BYTES (and the machine's or cgroup's limit) and start again",
        )

    def _grants(self, nbytes: int) -> bool:
        """Whether so many bytes more fit; they are noted then."""
        most = SHARES[Level.RELIEVE][0] * self.budget.budget_bytes
        self.look(again=True)
        now_s = self._now_s()
        with self._lock:
            self._granted = [one for one in self._granted if now_s - one[0] < GRANTED_S]
            ahead = sum(size for _, size in self._granted)
            if self._used + ahead + nbytes <= most:
                self._granted.append((now_s, nbytes))
                return True
        return False

    def refuses(self, level: Level, what: str) -> MemoryBudgetExceeded | None:
        """Why something is refused from a level on; None below it."""
        return self.error(what) if self.look() >= level else None

    def _hint(self) -> str:
        largest = self.accounts.largest_source()
        if largest is None:
            return HINT
        name, size = largest
        return f"the rows of {name} take {size:,} bytes; {HINT}"

    def facts(self) -> dict[str, Any]:
        """As ``/status`` shows it."""
        used = self.used
        return {
            "level": self.level.name.lower(),
            "used_bytes": used,
            "budget_bytes": self.budget.budget_bytes,
            "limit_bytes": self.budget.limit_bytes,
            "limit_of": self.budget.source,
            "held_bytes": self._held(),
            "counted_bytes": self.accounts.structures(),
        } | ({} if self.spill is None else self.spill.facts())
