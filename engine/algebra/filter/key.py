"""What tells rows apart that a condition keeps: no column that it holds constant."""

from __future__ import annotations

from engine.algebra.filter.stage import Filter
from engine.changes.result_key import KnownColumns, constants_of


def known_above(stage: Filter, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    return left.with_constants(constants_of(stage.predicate))
