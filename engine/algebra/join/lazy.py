"""JOIN, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.join.stage import Join
from engine.algebra.operator import Operator
from engine.operators.join import join
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Join, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    inner = run.inner(stage, stage.inner)
    if stage.latest is not None and stage.inner.scan.history:
        (outer,), _ = relation.values_of([stage.latest.outer])
        instants = outer.values if outer.valid is None else outer.values[outer.valid]
        if len(instants):
            run.met_versions_at(stage.inner.source, int(instants.min()))
    return join(stage, relation, inner, run.rows_max, candidates_max=run.candidates_max)
