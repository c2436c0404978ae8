"""GROUP BY, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.operator import Operator
from engine.operators.aggregate import aggregate
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Aggregate, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return aggregate(stage, relation)
