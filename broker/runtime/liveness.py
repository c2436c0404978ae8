"""Signs of life: what the threads of a child process leave for the supervisor, in a file that both map.

A thread has a *slot*: when it was last alive, and for how long it may be silent from then on. The supervisor
compares that with the clock (CLOCK_MONOTONIC is one for all processes of a machine and stands still while the
machine sleeps). The process also notes how much memory it uses of how much it may, so that it can be told
after a SIGKILL whether memory was short.

    header  used_bytes, budget_bytes     int64 each
    slot    alive_ns (0: not in use), silent_ns, busy    int64 each
    text    what the slot's thread is at, in UTF-8, up to a zero byte; behind all slots

Each value is written whole (8 aligned bytes), a slot by one thread. A text may be read half written: it is
for people. Standard library only.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

LOOP = 0
"""The slot of a process's event loop; that of shard n is n + 1."""
SLOTS = 1_025
TOIL = 10
_HEADER = struct.Struct("=qq")
_SLOT = struct.Struct("=qqq")
_INT = struct.Struct("=q")
_TEXTS = _HEADER.size + SLOTS * _SLOT.size
TEXT_BYTES = 256
SIZE = _TEXTS + SLOTS * TEXT_BYTES
BEAT_NS = 200_000_000
"""Who reads a thread's timer all the time leaves a sign of life this often."""


@dataclass(frozen=True, slots=True)
class Silent:
    """A slot whose thread has been silent for too long. busy: it was at work, and not waiting. at: on what,
    where it said so.
    """

    slot: int
    silent_s: float
    busy: bool
    at: str = ""


class Liveness:
    """The file of one child, mapped. The supervisor makes it (``fresh``), the child opens it."""

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        """path: None where nobody watches; everything then happens in this process's memory."""
        if path is None:
            self._map = mmap.mmap(-1, SIZE)
            return
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if fresh:
                os.ftruncate(descriptor, 0)
            if os.fstat(descriptor).st_size < SIZE:
                os.ftruncate(descriptor, SIZE)
            self._map = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)

    # --- the child --------------------------------------------------------------------------------

    def beat(self, slot: int = LOOP, *, silent_s: float = 0.0, busy: bool = True) -> None:
        """The thread of this slot is alive. silent_s: it may be silent for so long now, if that is longer
        than the supervisor's own time. busy: it goes to work, and not to wait.
        """
        place = _HEADER.size + slot * _SLOT.size
        # The time goes in last: with the old silence it could be taken for one that is over.
        _INT.pack_into(self._map, place + 8, int(silent_s * 1e9))
        _INT.pack_into(self._map, place + 16, int(busy))
        _INT.pack_into(self._map, place, time.monotonic_ns())

    def note(self, slot: int, text: str) -> None:
        """What the thread of this slot is at from now on."""
        place = _TEXTS + slot * TEXT_BYTES
        told = text.encode()[: TEXT_BYTES - 1]
        self._map[place : place + len(told) + 1] = told + b"\0"

    def noted(self, slot: int) -> str:
        """What the thread of this slot said last that it is at."""
        place = _TEXTS + slot * TEXT_BYTES
        return self._map[place : place + TEXT_BYTES].partition(b"\0")[0].decode(errors="ignore")

    def end(self, slot: int) -> None:
        """Nobody has this slot any more."""
        _INT.pack_into(self._map, _HEADER.size + slot * _SLOT.size, 0)

    def note_memory(self, used_bytes: int, budget_bytes: int) -> None:
        """How much memory the process uses, and how much it may."""
        _INT.pack_into(self._map, 8, budget_bytes)
        _INT.pack_into(self._map, 0, used_bytes)

    # --- the supervisor ---------------------------------------------------------------------------

    def start(self, silent_s: float) -> None:
        """A child is started: no slot but that of its loop is in use, which may be silent for so long."""
        self._map[:SIZE] = bytes(SIZE)
        self.beat(LOOP, silent_s=silent_s)

    def silent(self, timeout_s: float, since_s: float = 0.0) -> list[Silent]:
        """The threads that have been silent for too long. since_s: of the monotonic clock; silence counts
        from there on, at the earliest.
        """
        now_ns, since_ns = time.monotonic_ns(), int(since_s * 1e9)
        found = []
        for slot in range(SLOTS):
            alive_ns, silent_ns, busy = _SLOT.unpack_from(self._map, _HEADER.size + slot * _SLOT.size)
            passed_ns = now_ns - max(alive_ns, since_ns)
            if alive_ns and passed_ns > max(silent_ns, int(timeout_s * 1e9)):
                found.append(Silent(slot, passed_ns / 1e9, bool(busy), self.noted(slot) if busy else ""))
        return found

    @property
    def memory(self) -> tuple[int, int]:
        """(used, budget) in bytes, as the child noted last; zeros where it did not."""
        used, budget = _HEADER.unpack_from(self._map)
        return used, budget


class Pulse:
    """The slot of one thread, for those who work in it.

    The process itself sees a hang sooner than the supervisor may act on it: :meth:`silence`, for any thread.
    """

    def __init__(self, liveness: Liveness, slot: int, timeout_s: float) -> None:
        """timeout_s: the supervisor's."""
        self._liveness = liveness
        self._slot = slot
        self._timeout_s = timeout_s
        self._sign: tuple[float, str] = (math.inf, "")
        self._silent_s = 0.0
        self._beaten_ns = 0
        self._thread = 0

    def beat(self, doing: str = "") -> None:
        """At work, and alive. doing: at what, as a clause: "it makes a step of stream ticks"."""
        self._sign = (time.monotonic(), doing)
        if doing:
            self._liveness.note(self._slot, doing)
        self._works(0.0)

    def _works(self, silent_s: float) -> None:
        self._silent_s, self._thread = silent_s, threading.get_ident()
        self._beaten_ns = time.perf_counter_ns()
        self._liveness.beat(self._slot, silent_s=silent_s)

    def timer(self) -> int:
        """Nanoseconds from any beginning. That the thread asks, amid long work, is a sign of life as its last
        one was.
        """
        now_ns = time.perf_counter_ns()
        if now_ns - self._beaten_ns > BEAT_NS and threading.get_ident() == self._thread:
            due_s, doing = self._sign
            self._sign = (max(due_s, time.monotonic()), doing)
            self._works(self._silent_s)
        return now_ns

    def rest(self, wait_s: float = 0.0) -> None:
        """About to wait, for so long at most, which is no hang."""
        self._sign = (time.monotonic() + wait_s, "")
        self._beaten_ns = time.perf_counter_ns()
        self._liveness.beat(self._slot, silent_s=wait_s + self._timeout_s, busy=False)

    def call(self, limit_s: float, doing: str) -> None:
        """About to wait for another process, which answers soon where it is well, and may take so long."""
        self._sign = (time.monotonic(), doing)
        self._liveness.beat(self._slot, silent_s=limit_s + self._timeout_s, busy=False)

    def toil(self) -> None:
        """At work that gives no sign in between, for up to :data:`TOIL` times the supervisor's time."""
        self._sign = (math.inf, "")
        self._works(TOIL * self._timeout_s)

    def silence(self) -> tuple[float, str]:
        """For how many seconds the thread has given no sign when one was due, and what it was doing."""
        due_s, doing = self._sign
        return max(0.0, time.monotonic() - due_s), doing

    def end(self) -> None:
        """The thread ends."""
        self._sign = (math.inf, "")
        self._liveness.end(self._slot)


UNWATCHED = Pulse(Liveness(None), LOOP, 60.0)
"""The pulse of a thread that nobody watches."""
