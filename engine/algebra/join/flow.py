"""What a join gives where rows are missing: fewer pairs, but more rows that it keeps without a partner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.algebra.join.stage import Join
from engine.model.expressions import Column
from engine.model.source import SourceName, Stream
from engine.overload.precision.freedom import Above
from engine.overload.precision.of_query import StageInputs
from engine.overload.precision.shape import JoinLoss, LossNode, SemiJoinLoss


def above_left(stage: Join, above: Above, streams: Mapping[SourceName, Stream]) -> Above:
    many_one = stage.kind in ("inner", "left") and _is_by_key(stage, streams)
    grows = above.grows or stage.kind in ("right", "full")
    return replace(above, grows=grows, paired=above.paired or not many_one)


def above_right(stage: Join, above: Above) -> Above:
    untold = above.promised and stage.latest is not None
    grows = above.grows or untold or stage.kind in ("left", "full", "anti")
    return replace(above, paired=True, grows=grows)


def _is_by_key(join: Join, streams: Mapping[SourceName, Stream]) -> bool:
    """Whether a left row has one partner at most: in a table, by all of its key."""
    table = streams[join.inner.source]
    if not table.is_table or not join.inner.selects or join.latest is not None:
        return False
    names = {one.name for _, one in join.keys if isinstance(one, Column)}
    return set(table.key) <= names


def share_above(stage: Join, share: float, other: float) -> float | None:
    if stage.kind == "inner" and stage.latest is None:
        return share * other
    keeps_left = stage.kind in ("inner", "left", "semi", "anti")
    return share if other == 1.0 and (keeps_left or share == 1.0) else None


def loss(stage: Join, inputs: StageInputs) -> LossNode:
    if stage.kind == "anti":
        return inputs.negated()
    if stage.kind == "semi":
        return SemiJoinLoss(inputs.below, inputs.right, inputs.right_copies)
    return JoinLoss(inputs.below, inputs.right)
