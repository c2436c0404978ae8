"""SELECT in shards: always."""

from __future__ import annotations

from engine.algebra.project.stage import Project
from engine.changes.parts import PartRows


def rows_in_parts(stage: Project, rows: PartRows, inner: PartRows | None) -> PartRows:
    return rows.giving(stage.expressions())
