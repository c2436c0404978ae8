"""A window over changes: evaluated where more is known than the relation at the instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.algebra.operator import Operator
from engine.algebra.streamed.stage import Streamed
from engine.operators.relation import Relation

if TYPE_CHECKING:
    from engine.operators.pipeline import StageRun


def evaluated(
    stage: Streamed, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    raise AssertionError("it needs more than the relation at the instant")
