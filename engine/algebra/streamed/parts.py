"""A window over changes in shards: never."""

from __future__ import annotations

from engine.algebra.streamed.stage import Streamed
from engine.changes.parts import PartRows


def rows_in_parts(stage: Streamed, rows: PartRows, inner: PartRows | None) -> str:
    return "a window over a subquery counts and orders changes of all keys"
