"""Data and helpers that ``group_test.py`` shares with other tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.delta import Delta
from tests.operators.relations import exactly, rows_of


def of_column(delta: Delta, column: int) -> TemporalRelation:
    return delta.temporal.take(delta.rows()[delta.owners == column])


def folded(before: list[Any], told: TemporalRelation, instant: int) -> list[Any]:
    """The rows of an instant from those of the one before it and what is told."""
    found = list(before)
    for row in exactly(rows_of(told.relation.take(np.flatnonzero(told.valid_to == instant)))):
        found.remove(row)
    found += exactly(rows_of(told.relation.take(np.flatnonzero(told.valid_from == instant))))
    return sorted(found, key=repr)
