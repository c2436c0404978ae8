"""A negation that reads one side of a join  ->  below the join: fewer rows are joined.

    (A join C) WHERE A.k NOT IN (B)  ->  (A WHERE k NOT IN (B)) join C

What :mod:`engine.dataflow.rewrites.negation_up` does, the other way, where the negation leaves few rows. A
join with a table or with its versions stays below: what a negative tuple takes away was joined with a row
that may be gone. A bag difference over a join stays there, since it counts pairs.
"""

from __future__ import annotations

from engine.algebra.join.stage import Join
from engine.algebra.semi_join.stage import SemiJoin
from engine.dataflow.rewrites.rule import Sources, Stages, none_errs, reads, width_of
from engine.language.query import Query


def negation_down(query: Query, place: int, sources: Sources) -> Stages | None:
    """The rule, at the negation over a join."""
    negation = query.stages[place]
    if not isinstance(negation, SemiJoin) or not negation.negated or not place:
        return None
    join = query.stages[place - 1]
    if not isinstance(join, Join) or join.kind not in ("inner", "left") or join.latest is not None:
        return None
    if any(sources[scan.source].is_table for scan in join.inner.scans()):
        return None
    if not none_errs([*negation.keys, *(key for pair in join.keys for key in pair), join.condition]):
        return None
    if not all(at < width_of(query, place - 1, sources) for at in reads(*negation.keys)):
        return None
    return *query.stages[: place - 1], negation, join, *query.stages[place + 1 :]
