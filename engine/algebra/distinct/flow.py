"""What DISTINCT gives where rows are missing: the next of equal rows instead of the first."""

from __future__ import annotations

from engine.algebra.distinct.stage import Distinct
from engine.overload.precision.of_query import StageInputs
from engine.overload.precision.shape import Deduplicated


def loss(stage: Distinct, inputs: StageInputs) -> Deduplicated:
    return Deduplicated(inputs.below, inputs.left_copies)
