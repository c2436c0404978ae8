"""UNNEST where rows are missing below: all rows of a row are missing with it."""

from __future__ import annotations

from engine.algebra.unnest.stage import Unnest


def share_above(stage: Unnest, share: float, other: float) -> float | None:
    """None where rows are missing: those of one row come together, so that what is left is no sample."""
    return 1.0 if share == 1.0 else None
