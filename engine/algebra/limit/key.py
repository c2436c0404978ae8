"""What tells the first rows apart: nothing is needed for one."""

from __future__ import annotations

from engine.algebra.limit.stage import Limit
from engine.changes.result_key import KnownColumns


def known_above(stage: Limit, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    return left if stage.count is None or stage.count > 1 else left.with_keys(())
