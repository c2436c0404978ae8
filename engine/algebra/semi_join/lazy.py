"""IN and EXISTS, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.semi_join.stage import SemiJoin
from engine.operators.relation import Relation
from engine.operators.semi_join import semi_join

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: SemiJoin, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return semi_join(stage, relation, run.relation(stage.inner))
