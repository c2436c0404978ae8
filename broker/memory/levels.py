"""The worker's memory against its budget, and what follows from it.

What is used is the larger of what the process holds by the kernel's word (anonymous pages, which nobody can
take back, and what of them was swapped out) and of what is counted (:mod:`broker.memory.accounts`). So
nothing uncounted grows unseen, and what is counted counts before its pages are touched.

The *level* says what is not done any more, and each includes those before it:

    level    from share   until below
    refuse   0.80         0.78    new registrations, CREATE STREAM and CREATE TABLE are refused
    hold     0.92         0.90    no records are taken in
    shed     1.00         0.95    answers are refused

Rows are what grows while records come, so they leave for the disk first (:mod:`broker.memory.spill`), and no
more come; a query is paused only where that does not help (:mod:`broker.allotment.relief`).

Used from any thread.
"""

from __future__ import annotations

import math
import threading
from enum import IntEnum
from typing import Any

from broker.base import logs
from broker.memory.accounts import MemoryAccounts
from broker.memory.budget import Budget, useful_bytes
from broker.memory.held import HeldMemory, trim, trim_heap
from broker.memory.spill import Spill
from broker.runtime.liveness import Liveness
from tureen.errors import MIB, MemoryBudgetExceeded, SettingsError

FETCHED_PART = 64
FETCHED_KBYTES = (1_024, 65_536)
"""A stream's reader may fetch a 64th of the budget ahead, within these bounds."""
GRANTED_S = 0.5
"""Memory that was granted to an answer is held after so long at most."""
TRIM_S = 10.0
"""The allocator is asked for what it keeps as often at most, while memory is short."""
REFUSED_TRIM_S = 1.0
"""It is asked before something is refused, too, as often at most."""

log = logs.get()


class Level(IntEnum):
    """How short memory is."""

    NORMAL = 0
    REFUSE = 1
    HOLD = 2
    SHED = 3


SHARES = {
    Level.REFUSE: (0.80, 0.78),
    Level.HOLD: (0.92, 0.90),
    Level.SHED: (1.00, 0.95),
}
"""By level: the share of the budget that it begins at, and the one that it lasts down to."""

OF_ITSELF = 4
"""Rows and queries are named as the cause from a quarter on of what the worker takes without any."""

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
        held: HeldMemory,
        spill: Spill | None = None,
    ) -> None:
        """liveness: is told what is used. held: what the process holds. spill: takes rows that memory has no
        room for.
        """
        self.budget = budget
        self.level = Level.NORMAL
        self.accounts = MemoryAccounts(held.nbytes())
        """What is counted."""
        self.spill = spill
        self.liveness = liveness
        self._held = held
        self._lock = threading.Lock()
        self._used = 0
        self._seen = 0
        """The look at what is held that the level is of."""
        self._holds_since_s = math.inf
        self._trimmed_s = held.now_s()
        self._granted: list[tuple[float, int]] = []

    def require_useful(self) -> None:
        """Raise SettingsError where the worker could register nothing even without a row."""
        itself, most = self.accounts.structures()["process"], self.budget.budget_bytes
        if itself >= SHARES[Level.REFUSE][0] * most:
            raise SettingsError(
                f"the worker takes {itself:,} bytes without a row, of a memory budget of {most:,}: it could "
                "register nothing",
                hint=f"let TUREEN_MEMORY_BUDGET_BYTES be {useful_bytes(itself):,} or more, and the machine's "
                "or cgroup's limit above that",
            )

    @property
    def used(self) -> int:
        """Bytes, as of the last look."""
        self.look()
        return self._used

    def look(self, *, again: bool = False) -> Level:
        """The level now. again: however short ago the last look was."""
        now_s, held = self._held.now_s(), self._held.nbytes(again=again)
        if not again and self._held.looks == self._seen:
            return self.level
        counted = sum(self.accounts.structures().values())
        with self._lock:
            self._seen = self._held.looks
            self._used = max(held, counted)
            self.liveness.note_memory(self._used, self.budget.budget_bytes)
            before = self.level
            self.level = level_after(before, self._used / self.budget.budget_bytes)
            if self.level < Level.HOLD:
                self._holds_since_s = math.inf
            elif before < Level.HOLD:
                self._holds_since_s = now_s
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
        """Raise MemoryBudgetExceeded where so many bytes more would have intake held. What was granted a
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
        most = SHARES[Level.HOLD][0] * self.budget.budget_bytes
        self.look(again=True)
        now_s = self._held.now_s()
        with self._lock:
            self._granted = [one for one in self._granted if now_s - one[0] < GRANTED_S]
            ahead = sum(size for _, size in self._granted)
            if self._used + ahead + nbytes <= most:
                self._granted.append((now_s, nbytes))
                return True
        return False

    def refuses(self, level: Level, what: str) -> MemoryBudgetExceeded | None:
        """Why something is refused from a level on; None below it. What was freed is given back before."""
        if self.look() < level:
            return None
        if self._held.now_s() - self._trimmed_s >= REFUSED_TRIM_S:
            self._trimmed_s = self._held.now_s()
            trim_heap()
            if self.look(again=True) < level:
                return None
        return self.error(what)

    @property
    def stuck_s(self) -> float:
        """For how many seconds no records have been taken in, and no rows have left memory; 0: they are, or
        do.
        """
        self.look()
        left_s = -math.inf if self.spill is None else self.spill.wrote_s
        return max(0.0, self._held.now_s() - max(self._holds_since_s, left_s))

    @property
    def uncounted(self) -> int:
        """Bytes that the process holds and nothing counts: code that was loaded or compiled since it began,
        what answers work with, what allocators keep.
        """
        return max(0, self._held.nbytes() - sum(self.accounts.structures().values()))

    def _hint(self) -> str:
        """What takes most, and the ways out."""
        counted = self.accounts.structures()
        itself = counted["process"]
        largest = self.accounts.largest_source()
        causes = [
            (self.accounts.kept_for_queries(), "answers and state that queries keep take {:,} bytes"),
            (counted["answers_on_their_way"], "answers on their way take {:,} bytes"),
            (self.uncounted, "{:,} bytes are compiled code and what answers work with"),
        ]
        if largest is not None:
            causes.append((largest[1], f"the rows of {largest[0]} take {{:,}} bytes"))
        nbytes, cause = max(causes)
        if OF_ITSELF * nbytes < itself:
            nbytes, cause = itself, "the worker takes {:,} bytes without a row"
        return f"{cause.format(nbytes)}; {HINT}"

    def facts(self) -> dict[str, Any]:
        """As ``/status`` shows it."""
        used = self.used
        return {
            "level": self.level.name.lower(),
            "used_bytes": used,
            "budget_bytes": self.budget.budget_bytes,
            "limit_bytes": self.budget.limit_bytes,
            "limit_of": self.budget.source,
            "held_bytes": self._held.nbytes(),
            "uncounted_bytes": self.uncounted,
            "counted_bytes": self.accounts.structures(),
        } | ({} if self.spill is None else self.spill.facts())
