"""When rows leave a worker's memory for its disk: once it takes more than a share of its budget.

That share is below all levels of :mod:`broker.memory.levels`, so that nothing is refused or paused for rows
that the disk could hold. What is spilled counts no more: its pages are the system's to take back.
"""

from __future__ import annotations

import math
import resource
import threading
from collections.abc import Sequence
from typing import Any

from broker.base import logs
from broker.memory.budget import ROWS_SHARE
from broker.memory.held import HeldMemory, trim_heap
from engine.model.capacities import USUAL, Capacities
from engine.model.spill import Array, nbytes_of
from storage.spill_files import SpillFiles
from tureen.errors import StoreFull

TRIM_BYTES = 64 << 20
"""Freed memory is given back to the system each time so many bytes left."""
TRIM_S = 10.0
"""It is given back before anything leaves, as often at most."""
STRINGS_PART = 64
STRINGS_BYTES_MIN = 8 << 20
"""A table of a stream's strings may take a 64th of the budget, and so much at least."""
SPARE_BYTES = 1 << 30
"""So much of the disk is left to the stores."""
RETRY_S = 10.0
"""After the disk had no room, the next attempt."""
SAID_S = 600.0
"""The log is told of it as often at most."""
RESIDENT_S = 5.0
"""The system is asked which pages it has in memory as often at most."""

log = logs.get()


class Excess:
    """How much more the process holds than it should. What is given back to the system lags behind what is
    freed, so between two looks what left is taken off.
    """

    def __init__(self, begins: int, held: HeldMemory) -> None:
        """begins: what may be held."""
        self.begins = begins
        self._held = held
        self._seen = 0
        """The look that the bytes are of."""
        self._trimmed_s = -math.inf
        self._bytes = 0
        self._freed = 0

    def look(self) -> int:
        """Bytes that are too much, as of the last look, less what left since."""
        now_s, held = self._held.now_s(), self._held.nbytes()
        if self._held.looks != self._seen:
            if held > self.begins and now_s - self._trimmed_s >= TRIM_S:
                self._trimmed_s = now_s
                trim_heap()
                held = self._held.nbytes(again=True)
            self._seen = self._held.looks
            self._bytes = max(0, held - self.begins)
        return self._bytes

    def left(self, nbytes: int) -> None:
        """So many bytes left memory."""
        self._bytes = max(0, self._bytes - nbytes)
        self._freed += nbytes
        if self._freed >= TRIM_BYTES:
            self._freed = 0
            trim_heap()


class Spill:
    """Takes rows when memory is short (:class:`engine.model.spill.SpillSpace`). Used from any thread."""

    def __init__(
        self,
        files: SpillFiles,
        budget_bytes: int,
        bytes_max: int,
        held: HeldMemory,
    ) -> None:
        """bytes_max: what the files may take in all; 0: nothing leaves memory. held: by the process."""
        self.wrote_s = -math.inf
        """When rows left memory last."""
        self._files = files
        self._budget_bytes = budget_bytes
        self._bytes_max = bytes_max
        self._now_s = held.now_s
        self._lock = threading.Lock()
        self._excess = Excess(int(ROWS_SHARE * budget_bytes), held)
        self._refused: dict[str, str | None] | None = None
        """Why the disk took no rows last; the error itself would keep them."""
        self._refused_s = self._said_s = -math.inf
        self._resident = 0
        self._resident_s = -math.inf

    @property
    def capacities(self) -> Capacities:
        """What engines are made with whose rows go here."""
        strings_bytes = max(STRINGS_BYTES_MIN, min(USUAL.strings_bytes, self._budget_bytes // STRINGS_PART))
        return Capacities(spill=self, strings_bytes=strings_bytes)

    def wanted(self) -> int:
        """How many bytes are to leave; 0 for a while after the disk had no room."""
        with self._lock:
            if not self._bytes_max or self._now_s() - self._refused_s < RETRY_S:
                return 0
            return self._excess.look()

    def write(self, arrays: Sequence[Array]) -> list[Array] | None:
        """As :meth:`storage.spill_files.SpillFiles.write`; None: there is no room, which the log is told."""
        nbytes = nbytes_of(arrays)
        try:
            self._check_room(nbytes)
            written = self._files.write(arrays)
        except StoreFull as full:
            self._refuse(full)
            return None
        with self._lock:
            self._refused = None
            self.wrote_s = self._now_s()
            self._excess.left(nbytes)
        return written

    def _check_room(self, nbytes: int) -> None:
        """Raises StoreFull."""
        if self._files.nbytes + nbytes > self._bytes_max:
            raise StoreFull(
                f"spilled rows take all of their {self._bytes_max:,} bytes",
                hint="raise TUREEN_SPILL_BYTES_MAX, or make windows or RETAIN shorter",
            )
        if self._files.free_bytes() < nbytes + SPARE_BYTES:
            raise StoreFull(
                f"the disk of {self._files.directory} has less than {SPARE_BYTES:,} bytes left",
                hint="free some of it, or make windows or RETAIN shorter",
            )

    def _refuse(self, full: StoreFull) -> None:
        now_s = self._now_s()
        with self._lock:
            says = now_s - self._said_s >= SAID_S
            self._refused, self._refused_s = {"message": full.message, "hint": full.hint}, now_s
            self._said_s = now_s if says else self._said_s
        if says:
            log.warning("spill_refused", error=full.message, hint=full.hint)

    def facts(self) -> dict[str, Any]:
        """As ``/status`` shows it."""
        return {
            "spill_from_bytes": self._excess.begins,
            "spilled_bytes": self.nbytes,
            "spilled_bytes_max": self._bytes_max,
            "spilled_resident_bytes": self.resident(),
            "disk_waits": disk_waits(),
            "spilled_refused": self._refused,
        }

    @property
    def nbytes(self) -> int:
        """Bytes of spilled rows."""
        return self._files.nbytes

    def resident(self) -> int:
        """Bytes of spilled rows that the system has in memory, as of some seconds ago at most."""
        with self._lock:
            now_s = self._now_s()
            if now_s - self._resident_s >= RESIDENT_S:
                self._resident_s, self._resident = now_s, self._files.resident()
            return self._resident


def disk_waits() -> int:
    """How often a thread of this process waited for a page from disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
