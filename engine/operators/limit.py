"""At most so many rows, after some that are left out. O(1)."""

from __future__ import annotations

from engine.algebra.limit.stage import Limit
from engine.operators.relation import Relation


def limit(stage: Limit, relation: Relation) -> Relation:
    """Rows offset <= place < offset + count."""
    n = len(relation)
    start = min(n, stage.offset)
    stop = n if stage.count is None else min(n, stage.offset + stage.count)
    return relation if stop - start == n else relation.slice(start, stop)
