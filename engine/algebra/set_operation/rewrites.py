"""Rules at UNION ALL, and at EXCEPT ALL below a join."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.distinct.stage import Distinct
from engine.algebra.join.stage import Join
from engine.algebra.set_operation.stage import SetOperation
from engine.changes.result_key import told_by
from engine.dataflow.rewrites.rule import Sources, Stages, is_made_distinct, reads, width_of
from engine.language.query import Query
from engine.model.expressions import Column
from engine.model.types import Kind


def drop_distinct(stage: SetOperation, query: Query, place: int, sources: Sources) -> Stages | None:
    inner = stage.inner
    if stage.kind != "union" or not (inner.stages and isinstance(inner.stages[-1], Distinct)):
        return None
    if not is_made_distinct(query, place):
        return None
    within = replace(stage, inner=replace(inner, stages=inner.stages[:-1]))
    return *query.stages[:place], within, *query.stages[place + 1 :]


def makes_distinct(stage: SetOperation, query: Query, place: int) -> bool:
    return stage.kind == "union" and is_made_distinct(query, place)


def merge_unions(stage: SetOperation, query: Query, place: int, sources: Sources) -> Stages | None:
    inner = stage.inner
    if stage.kind != "union" or not inner.stages:
        return None
    last = inner.stages[-1]
    if not isinstance(last, SetOperation) or last.kind != "union":
        return None
    first = replace(stage, inner=replace(inner, stages=inner.stages[:-1]))
    return *query.stages[:place], first, last, *query.stages[place + 1 :]


def over_join(
    stage: SetOperation, join: Join, query: Query, place: int, sources: Sources
) -> SetOperation | None:
    if stage.kind != "except" or not stage.all or not _counts_alike(stage, join, query, place, sources):
        return None
    return replace(stage, on=stage.on or tuple((at, at) for at, _ in enumerate(stage.inner.columns)))


def _counts_alike(stage: SetOperation, join: Join, query: Query, place: int, sources: Sources) -> bool:
    """Whether a value has as many pairs as left rows, or none."""
    width = width_of(query, place, sources)
    if stage.on is None:
        if any(type_.kind is Kind.DOUBLE for _, type_ in stage.inner.columns):
            return False  # whole rows are given with 0.0 for -0.0, compared columns as they are
        compared = set(range(len(stage.inner.columns)))
    else:
        compared = {at for at, _ in stage.on}
    keys = [of.index for _, of in join.keys if isinstance(of, Column)]
    _, told = told_by(join.inner, sources)
    one_partner = join.latest is not None or any(key <= set(keys) for key in told)
    if join.kind == "left":
        return one_partner
    read = reads(*(key for key, _ in join.keys), join.condition)
    return one_partner and join.latest is None and {at for at in read if at < width} <= compared
