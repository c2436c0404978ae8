"""Whole answers of followed queries, as they are told: given to begin with, or taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.changes.copies import copies_of_whole
from engine.changes.transition import NEVER
from engine.language.query import Query
from engine.model.batch import Int32Array
from engine.model.changes import Changes, Occasion, Operator
from engine.model.limits import Limits
from tureen.errors import LimitExceeded

TAKEN_BACK_FACTOR = 4
"""An answer may have grown to more rows than can be given at once; it is taken back all the same."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole answer that is told or was told. now_ms: its instant; None before there is one. copies:
    int32[rows], which copy of equal rows each is; None: not known, or not wanted.
    """

    query_id: str
    table: pa.Table
    now_ms: int | None
    copies: Int32Array | None = None


def has_whole(query: Query, operator: Operator, occasion: Occasion) -> bool:
    """Whether a whole answer of a query is told on an occasion."""
    emit = query.emit
    if emit is None or not emit.snapshot or operator == "dstream":
        return False
    return occasion == "snapshot" or operator == "changes"


def rows_max(limits: Limits, occasion: Occasion) -> int:
    """How many rows may be told: more where an answer is taken back."""
    return limits.changes_max * (TAKEN_BACK_FACTOR if occasion == "end" else 1)


def limited(work: Callable[[int], pa.Table], limits: Limits, occasion: Occasion) -> pa.Table:
    """The rows of a whole answer. work: gives them, and refuses more than so many.

    Raises as ``work``; LimitExceeded: more rows than ``changes_max``, or than :data:`TAKEN_BACK_FACTOR` times
    as many where it ends.
    """
    limit = rows_max(limits, occasion)
    try:
        return work(limit)
    except LimitExceeded as large:
        if large.limit != "snapshot_rows_max":
            raise
        raise LimitExceeded("changes_max", limit, large.got, hint=large.hint) from large


def changes_of_whole(answer: Whole, occasion: Occasion, *, copies: bool) -> Changes:
    """An answer given, or taken back. copies: whether equal rows are told apart. O(rows), hashing where
    copies are still to be numbered.
    """
    n, now_ms = answer.table.num_rows, answer.now_ms
    numbers = None
    if copies:
        numbers = copies_of_whole(answer.table) if answer.copies is None else answer.copies
    return Changes.of_one(
        answer.query_id,
        answer.table,
        np.full(n, 1 if occasion == "snapshot" else -1, np.int8),
        np.full(n, 0 if now_ms is None else now_ms),
        NEVER if now_ms is None else now_ms,
        occasion,
        numbers,
    )
