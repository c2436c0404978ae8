"""FETCH FIRST n ROWS WITH TIES in shards: of rows that every shard has."""

from __future__ import annotations

from engine.algebra.with_ties.stage import WithTies
from engine.changes.parts import PartRows


def rows_in_parts(stage: WithTies, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    return rows if rows.whole else "FETCH FIRST chooses among rows of all keys"
