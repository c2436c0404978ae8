"""SELECT, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.project.stage import Project
from engine.operators.projected import projected
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Project, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return projected(stage.outputs, relation)
