"""DISTINCT: equal rows once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.algebra.operator import Operator


@dataclass(frozen=True, slots=True)
class Distinct(Operator):
    """Equal rows once, the first of them; NULL equals NULL here, NaN equals NaN."""

    groups: ClassVar[bool] = True
    replaces_missing: ClassVar[bool] = True

    @property
    def one_zero(self) -> bool:
        return True

    @property
    def places_read(self) -> None:
        return None
