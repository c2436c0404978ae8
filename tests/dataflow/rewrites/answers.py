"""Answers over a few rows that a test names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.language.query import Query
from engine.model.source import SourceName
from tests.changes.ways import Row, stored
from tests.dataflow.rewrites.small_plans import snapshots

LAST_MS = 9

Rows = dict[str, Sequence[Row]]


def s(instant: int, k: int | None, v: float, w: str = "a") -> Row:
    return instant, (k, v, w, instant)


def of_key(instant: int, k: int, value: int | None) -> Row:
    """A row of u, or a version of a row of h or m."""
    return instant, (k, value, instant)


def answer(query: Query, rows: Rows, at_ms: int = LAST_MS) -> Counter[str]:
    """The bag at an instant."""
    by_source = {
        SourceName(name): SourceTransition(stored(name, rows.get(name, ()), LAST_MS, None), True)
        for name in query.sources
    }
    found, _ = snapshots(query, Transition(NEVER, LAST_MS, by_source))[2 * at_ms]
    return Counter(found)
