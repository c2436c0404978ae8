"""LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.algebra.operator import Operator


@dataclass(frozen=True, slots=True)
class Limit(Operator):
    """At most ``count`` rows (None: all) after the first ``offset``."""

    replaces_missing: ClassVar[bool] = True
    takes_order: ClassVar[bool] = True

    count: int | None
    offset: int = 0

    @property
    def goes_by_order(self) -> bool:
        return True

    @property
    def rows_read(self) -> int | None:
        return None if self.count is None else self.offset + self.count
