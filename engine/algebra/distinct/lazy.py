"""DISTINCT, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.distinct.stage import Distinct
from engine.algebra.operator import Operator
from engine.operators.distinct import distinct
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Distinct, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return distinct(relation), 0
