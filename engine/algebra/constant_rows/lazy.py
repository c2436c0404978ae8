"""VALUES, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.constant_rows.stage import ConstantRows
from engine.algebra.operator import Operator
from engine.operators.constant_rows import constant_rows
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: ConstantRows, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return constant_rows(stage.columns, stage.rows), 0
