"""The transition of a query's sources over a step: between which instants, and how each stands meanwhile.

Instants are those of what moves. Where a stream takes a step they are the query's NOW: every stream moves
with it, and a table of the same kind of time as far as it is known. Where a table takes a step (NOW stands
still, and the table was behind it, or is of another kind of time) they are that table's own, the others stand
still, and what changes, changes at the query's NOW.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.model.batch import Int64Array
from engine.model.source import SourceName
from engine.operators.scan import ScanAt

NEVER = int(np.iinfo(np.int64).min)
"""Before every instant."""
FOREVER = int(np.iinfo(np.int64).max)
"""After every instant."""


@dataclass(frozen=True, slots=True)
class SourceTransition:
    """How one source stands in the interval.

    at: as it stands at the end of the interval, over all rows that were there at any time of it;
    ``at.retained_from_ms`` is as at the beginning.
    moves: False, it stands over the whole interval as ``at`` says.
    retention_ms: at an instant t of the interval rows before ``t - retention_ms`` are retained no more; None:
    that is only known of its end. retained_to_ms: rows before it are retained no more at the end of the
    interval; None: all are.
    """

    at: ScanAt
    moves: bool
    retention_ms: int | None = None
    retained_to_ms: int | None = None

    def released_ms(self, timestamps: Int64Array, until_ms: int) -> Int64Array:
        """The instant at which retention takes rows of these timestamps; FOREVER where it does not in this
        interval.
        """
        if self.retained_to_ms is None:
            return np.full(len(timestamps), FOREVER)
        at = until_ms if self.retention_ms is None else timestamps + (self.retention_ms + 1)
        return np.where(timestamps < self.retained_to_ms, at, FOREVER)


@dataclass(frozen=True, slots=True)
class Transition:
    """since_ms < t <= until_ms are the instants of the interval; NEVER: nothing was visible before.

    instant_ms: where a table moves alone beside streams, the instant at which all changes are; None: each is
    at its own, or at floor_ms if that is later.
    """

    since_ms: int
    until_ms: int
    by_source: Mapping[SourceName, SourceTransition]
    instant_ms: int | None = None
    floor_ms: int = NEVER

    def told(self, instants: Int64Array) -> Int64Array:
        """The instants of changes, as they are told. What is there from the first instant that there is on
        (``NEVER + 1``: a table beside streams) came at 0.
        """
        if self.instant_ms is not None:
            return np.full(len(instants), self.instant_ms)
        if len(instants) and int(instants.min()) > max(NEVER + 1, self.floor_ms):
            return instants
        return np.maximum(np.where(instants == NEVER + 1, 0, instants), self.floor_ms)
