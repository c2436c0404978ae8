"""DISTINCT: equal rows once, where the first of them stands. O(rows * columns), hashing."""

from __future__ import annotations

from engine.model.lazy_columns import LazyColumns
from engine.operators.keys import encode, with_one_zero
from engine.operators.relation import Relation


def distinct(relation: Relation) -> Relation:
    """NULL equals NULL, NaN equals NaN, -0.0 equals 0.0 and is given as that."""
    columns = relation.columns
    _, firsts = encode(columns, len(relation))
    few = relation if len(firsts) == len(relation) else relation.among(firsts)
    return with_plain_zeros(few)


def with_plain_zeros(relation: Relation) -> Relation:
    """The rows of a relation with 0.0 in place of -0.0."""
    columns = relation.columns
    return relation.with_columns(LazyColumns(len(columns), lambda place: with_one_zero(columns[place])))
