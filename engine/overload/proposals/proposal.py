"""What a rule proposes, and what it comes to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from engine.model.approximation import Expected


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A text instead of that of a query. source: whose window or sample it changes; change: what was written,
    and what is.
    """

    rule: str
    source: str
    change: str
    sql: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite with what it saves and costs.

    rows, rows_after: that the source's window holds for the query, before and after; bytes_saved: at most, of
    the source's store: another query with as wide a window keeps them. answer_rows, answer_rows_after: of
    the answer. Estimates as EXPLAIN's. expected: precision of the answer, compared with that of the present
    text; None: nothing tells. within_tolerance: whether what the query allows covers it.
    """

    rule: str
    source: str
    change: str
    sql: str
    rows: float
    rows_after: float
    bytes_saved: float
    answer_rows: float
    answer_rows_after: float
    expected: Expected | None
    within_tolerance: bool

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"expected": None if self.expected is None else self.expected.as_dict()}
