"""What tells groups apart: their keys."""

from __future__ import annotations

from engine.algebra.aggregate.stage import Aggregate
from engine.changes.result_key import KnownColumns


def known_above(stage: Aggregate, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    """One row for each value of the keys; so what told rows apart before, among the keys, still does."""
    seen = left.seen_as([key.expression for key in stage.keys])
    groups = KnownColumns(len(stage.keys) + len(stage.calls), seen.keys, seen.constant, seen.filled)
    return groups.with_keys(range(len(stage.keys)))
