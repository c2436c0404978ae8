"""VALUES where rows are missing below: nothing is missing here."""

from __future__ import annotations

from collections.abc import Mapping

from engine.algebra.constant_rows.stage import ConstantRows
from engine.model.source import SourceName, Stream
from engine.overload.precision.freedom import Above


def above_left(stage: ConstantRows, above: Above, streams: Mapping[SourceName, Stream]) -> Above:
    return above


def share_above(stage: ConstantRows, share: float, other: float) -> float:
    return 1.0
