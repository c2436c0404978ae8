"""FETCH FIRST n ROWS WITH TIES, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.with_ties.stage import WithTies
from engine.operators.relation import Relation
from engine.operators.sort import sort

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: WithTies, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    rows, errors = sort(stage.keys, relation, stage.offset + stage.count, ties=stage.count > 0)
    return rows.slice(min(stage.offset, len(rows)), len(rows)), errors
