"""What tells rows of SELECT apart: the columns of a key, where all of them are still there."""

from __future__ import annotations

from engine.algebra.project.stage import Project
from engine.changes.result_key import KnownColumns


def known_above(stage: Project, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    return left.seen_as([output.expression for output in stage.outputs])
