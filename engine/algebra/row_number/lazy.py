"""ROW_NUMBER, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.row_number.stage import RowNumber
from engine.operators.relation import Relation
from engine.operators.row_number import row_number

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: RowNumber, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return row_number(stage, relation)
