"""UNION, INTERSECT and EXCEPT, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.set_operation.stage import SetOperation
from engine.operators.relation import Relation
from engine.operators.set_operations import set_operation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: SetOperation, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return set_operation(stage, relation, run.relation(stage.inner), run.rows_max), 0
