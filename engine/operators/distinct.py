"""DISTINCT: equal rows once, the first of them. O(rows * columns), hashing."""

from __future__ import annotations

from engine.operators.keys import encode
from engine.operators.relation import Relation


def distinct(relation: Relation) -> Relation:
    """NULL equals NULL, NaN equals NaN, -0.0 equals 0.0."""
    _, firsts = encode(relation.columns, len(relation))
    return relation if len(firsts) == len(relation) else relation.take(firsts)
