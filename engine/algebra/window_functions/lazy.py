"""Window functions, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.window_functions.stage import WindowFunctions
from engine.operators.relation import Relation
from engine.operators.window_functions import window_functions

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: WindowFunctions, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    return window_functions(stage, relation)
