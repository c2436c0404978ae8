"""What a stream of changes gives where rows are missing: as large a share of the changes."""

from __future__ import annotations

from engine.algebra.streamed.stage import Streamed


def share_above(stage: Streamed, share: float, other: float) -> float:
    return share
