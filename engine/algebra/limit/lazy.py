"""LIMIT, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.limit.stage import Limit
from engine.algebra.operator import Operator
from engine.operators.limit import limit
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Limit, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return limit(stage, relation), 0
