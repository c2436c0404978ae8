"""Rules at NOT IN and NOT EXISTS."""

from __future__ import annotations

from engine.algebra.join.stage import Join
from engine.algebra.semi_join.stage import SemiJoin
from engine.dataflow.rewrites.rule import Sources, Stages, none_errs, reads, width_of
from engine.language.query import Query


def negation_down(stage: SemiJoin, query: Query, place: int, sources: Sources) -> Stages | None:
    if not stage.negated or not place:
        return None
    join = query.stages[place - 1]
    if not isinstance(join, Join) or join.kind not in ("inner", "left") or join.latest is not None:
        return None
    if any(sources[scan.source].is_table for scan in join.inner.scans()):
        return None
    if not none_errs([*stage.keys, *(key for pair in join.keys for key in pair), join.condition]):
        return None
    if not all(at < width_of(query, place - 1, sources) for at in reads(*stage.keys)):
        return None
    return *query.stages[: place - 1], stage, join, *query.stages[place + 1 :]


def over_join(stage: SemiJoin, join: Join, query: Query, place: int, sources: Sources) -> SemiJoin | None:
    return stage if stage.negated and none_errs(stage.keys) else None
