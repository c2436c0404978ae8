"""LIMIT in shards: of rows that every shard has."""

from __future__ import annotations

from engine.algebra.limit.stage import Limit
from engine.changes.parts import PartRows


def rows_in_parts(stage: Limit, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    return rows if rows.whole else "LIMIT chooses among rows of all keys"
