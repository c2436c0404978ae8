"""Rules at a join."""

from __future__ import annotations

from engine.algebra.join.stage import Join
from engine.dataflow.rewrites.rule import Sources, Stages, none_errs
from engine.dataflow.rewrites.rules import over_join
from engine.language.query import Query
from engine.model.expressions import Expression


def negation_up(stage: Join, query: Query, place: int, sources: Sources) -> Stages | None:
    if not place or stage.kind not in ("inner", "left"):
        return None
    above = over_join(query.stages[place - 1], stage, query, place, sources)
    if above is None or not none_errs(_expressions(stage)):
        return None
    return *query.stages[: place - 1], stage, above, *query.stages[place + 1 :]


def _expressions(join: Join) -> list[Expression | None]:
    instants = [] if join.latest is None else [join.latest.outer, join.latest.inner]
    return [*(key for pair in join.keys for key in pair), join.condition, *instants]
