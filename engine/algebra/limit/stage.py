"""LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.operator import Operator


@dataclass(frozen=True, slots=True)
class Limit(Operator):
    """At most ``count`` rows (None: all) after the first ``offset``."""

    count: int | None
    offset: int = 0

    @property
    def rows_read(self) -> int | None:
        return None if self.count is None else self.offset + self.count
