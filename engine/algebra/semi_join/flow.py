"""What IN and EXISTS keep where rows are missing: fewer, but more of NOT IN and NOT EXISTS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.algebra.semi_join.stage import SemiJoin
from engine.model.source import SourceName, Stream
from engine.overload.precision.freedom import Above
from engine.overload.precision.of_query import StageInputs
from engine.overload.precision.shape import LossNode, SemiJoinLoss


def above_left(stage: SemiJoin, above: Above, streams: Mapping[SourceName, Stream]) -> Above:
    return replace(above, paired=True)


def above_right(stage: SemiJoin, above: Above) -> Above:
    return replace(above, paired=True, grows=above.grows or stage.negated)


def share_above(stage: SemiJoin, share: float, other: float) -> float | None:
    return share if other == 1.0 else None


def loss(stage: SemiJoin, inputs: StageInputs) -> LossNode:
    if stage.negated:
        return inputs.negated()
    return SemiJoinLoss(inputs.below, inputs.right, inputs.right_copies)
