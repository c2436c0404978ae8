"""UNNEST, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.unnest.stage import Unnest
from engine.operators.relation import Relation
from engine.operators.unnest import unnested

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Unnest, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    found = unnested(stage, relation, run.rows_max)
    return found.relation, found.errors
