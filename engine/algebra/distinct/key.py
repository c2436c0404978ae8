"""What tells distinct rows apart: all columns together."""

from __future__ import annotations

from engine.algebra.distinct.stage import Distinct
from engine.changes.result_key import KnownColumns


def known_above(stage: Distinct, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    return left.with_keys(range(left.width))
