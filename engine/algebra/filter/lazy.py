"""A condition, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.filter.stage import Filter
from engine.algebra.operator import Operator
from engine.operators.filter import keep
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Filter, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return keep(stage, relation)
