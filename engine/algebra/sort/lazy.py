"""ORDER BY, evaluated: no more rows are sorted than the stage that follows reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.sort.stage import Sort
from engine.operators.relation import Relation
from engine.operators.sort import sort

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Sort, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return sort(stage.keys, relation, None if following is None else following.rows_read)
