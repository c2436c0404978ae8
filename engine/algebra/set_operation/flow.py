"""What UNION, INTERSECT and EXCEPT give where rows are missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from engine.algebra.set_operation.stage import SetOperation
from engine.model.source import SourceName, Stream
from engine.overload.precision.freedom import Above
from engine.overload.precision.of_query import StageInputs, rate_at_random
from engine.overload.precision.shape import BagCompared, JoinLoss, LossNode, United


def above_left(stage: SetOperation, above: Above, streams: Mapping[SourceName, Stream]) -> Above:
    if stage.kind == "union":
        return above
    return replace(above, paired=True, grows=above.grows or not stage.all)


def above_right(stage: SetOperation, above: Above) -> Above:
    if stage.kind == "union":
        return above
    return replace(above, paired=True, grows=above.grows or not stage.all or stage.kind == "except")


def share_above(stage: SetOperation, share: float, other: float) -> float | None:
    return share if share == other and (stage.kind == "union" or share == 1.0) else None


def loss(stage: SetOperation, inputs: StageInputs) -> LossNode:
    if stage.kind == "union":
        assert inputs.second is not None
        right, right_rows = inputs.second
        return United((inputs.below, right), (max(inputs.rows, 1e-9), max(right_rows, 1e-9)))
    copies = inputs.copies if stage.all else None
    if copies is not None:
        mine, others = rate_at_random(copies.left), rate_at_random(copies.right)
        # The right side lacks those of its possible values that no row happens to have.
        shared = min(1.0, copies.shared / -math.expm1(-others))
        return BagCompared(stage.kind, inputs.below, inputs.right, mine, others, shared)
    return JoinLoss(inputs.below, inputs.right) if stage.kind == "intersect" else inputs.negated()
