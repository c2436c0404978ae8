"""A batch in flight: its rows, its lineage, and the modules it visits.

Lineage (CACQ section 3): for each row the queries that still want it, as word columns, and for the
batch the modules it has passed. Rows and queries only ever leave; what is left at the end is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from engine.kernels import bitmaps
from engine.model.batch import Batch, BoolArray


@dataclass(slots=True)
class Flight:
    """rows: n rows. wanted: uint64[words, n]: bit (slot & 63) of word (slot >> 6): its query wants it.

    done: names of modules visited. erring: slot -> bool[n]: rows whose predicate met an error and was not
    refuted since.
    """

    rows: Batch
    wanted: bitmaps.Words
    done: set[str] = field(default_factory=set)
    erring: dict[int, BoolArray] = field(default_factory=dict)

    def settle_errors(self) -> dict[int, int]:
        """At the end: rows that err and nobody refuted leave the answer; how many, by slot."""
        counts: dict[int, int] = {}
        for slot, erring in self.erring.items():
            column = self.wanted[slot >> 6]
            bit = np.uint64(1 << (slot & 63))
            ended = erring & ((column & bit) != 0)
            column[ended] &= ~bit
            count = int(ended.sum())
            if count:
                counts[slot] = count
        return counts


class Module(Protocol):
    """A stop on the way: it may clear bits of ``flight.wanted``, never set any."""

    name: str

    def visit(self, flight: Flight) -> tuple[int, int]:
        """Returns how many rows it was given (some query wanted them) and how many it let pass."""
