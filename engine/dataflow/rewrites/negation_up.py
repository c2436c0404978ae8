"""A join of what a negation leaves  ->  the negation of the join: fewer operators get negative tuples.

    (A WHERE k NOT IN (B)) join C        ->  (A join C) WHERE k NOT IN (B)
    (A EXCEPT ALL ON (k) B) join C on k  ->  (A join C on k) EXCEPT ALL ON (k) B     C has each k once at most
    (A EXCEPT ALL ON (k) B) left join C  ->  (A left join C) EXCEPT ALL ON (k) B     C has one partner at most

NOT IN and NOT EXISTS look at one row, so they say of a pair what they say of its left row. A bag difference
counts rows: of the pairs it counts as many as there were left rows where each has one pair (of a LEFT JOIN,
of which each left row has one at most), or all left rows of a value have one and the same partner, or none.
With more partners, or partners by other columns, the answers differ; the difference then stays below.

No join with a table, or with its versions, goes above a negation by any rule: the other way is
:mod:`engine.dataflow.rewrites.negation_down`, for streams.
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.join.stage import Join
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.changes.result_key import told_by
from engine.dataflow.rewrites.rule import Sources, Stages, none_errs, reads, width_of
from engine.language.query import Query
from engine.model.expressions import Column, Expression
from engine.model.types import Kind


def negation_up(query: Query, place: int, sources: Sources) -> Stages | None:
    """The rule, at the join over a negation."""
    join = query.stages[place]
    if not isinstance(join, Join) or not place or join.kind not in ("inner", "left"):
        return None
    if not none_errs(_expressions(join)):
        return None
    match query.stages[place - 1]:
        case SemiJoin(negated=True) as negation if none_errs(negation.keys):
            above: SemiJoin | SetOperation = negation
        case SetOperation("except", all=True) as negation if _counts_alike(
            query, place, join, negation, sources
        ):
            on = negation.on or tuple((at, at) for at, _ in enumerate(negation.inner.columns))
            above = replace(negation, on=on)
        case _:
            return None
    return *query.stages[: place - 1], join, above, *query.stages[place + 1 :]


def _counts_alike(query: Query, place: int, join: Join, negation: SetOperation, sources: Sources) -> bool:
    """Whether a value has as many pairs as left rows, or none."""
    width = width_of(query, place, sources)
    if negation.on is None:
        if any(type_.kind in (Kind.DOUBLE, Kind.ARRAY) for _, type_ in negation.inner.columns):
            return False  # whole rows are given with 0.0 for -0.0, compared columns as they are
        compared = set(range(len(negation.inner.columns)))
    else:
        compared = {at for at, _ in negation.on}
    keys = [of.index for _, of in join.keys if isinstance(of, Column)]
    _, told = told_by(join.inner, sources)
    one_partner = join.latest is not None or any(key <= set(keys) for key in told)
    if join.kind == "left":
        return one_partner
    read = reads(*(key for key, _ in join.keys), join.condition)
    return one_partner and join.latest is None and {at for at in read if at < width} <= compared


def _expressions(join: Join) -> list[Expression | None]:
    instants = [] if join.latest is None else [join.latest.outer, join.latest.inner]
    return [*(key for pair in join.keys for key in pair), join.condition, *instants]
