"""Arguments for which a deterministic function hung or ended its process: it is not called for them again for
a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.model.batch import Column
from engine.model.user_calls import Reason

REMEMBERED_S = 600.0
"""So long it is not called for them."""

ARGUMENTS_MAX = 256
"""So many are remembered, the last ones."""


class FatalArguments:
    """The arguments of one function. Several threads may use it."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._known: dict[tuple[Any, ...], tuple[Reason, float]] = {}

    def add(self, columns: Sequence[Column], row: int, reason: Reason) -> None:
        """The function failed for this row, when it was called for it alone. O(1)."""
        (arguments,) = _rows([column.slice(row, row + 1) for column in columns])
        known = {**self._known, arguments: (reason, self._now_s() + REMEMBERED_S)}
        while len(known) > ARGUMENTS_MAX:
            del known[next(iter(known))]
        self._known = known

    def find(self, columns: Sequence[Column]) -> dict[int, Reason]:
        """Which rows have such arguments, and why it failed. O(rows), O(1) where none is remembered."""
        now_s = self._now_s()
        known = {key: reason for key, (reason, until_s) in self._known.items() if until_s > now_s}
        if not known:
            return {}
        return {row: known[key] for row, key in enumerate(_rows(columns)) if key in known}


def _rows(columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_arrow().to_pylist() for column in columns), strict=True))
