"""Rows where a predicate is TRUE. O(rows)."""

from __future__ import annotations

import numpy as np

from engine.algebra.filter.stage import Filter
from engine.language.evaluate import truth
from engine.operators.relation import Relation, count


def keep(stage: Filter, relation: Relation) -> tuple[Relation, int]:
    """What is left, and for how many rows the predicate was an error."""
    true, error = truth(stage.predicate, relation.columns, len(relation))
    return relation.among(np.flatnonzero(true)), count(error)
