"""How DISTINCT is shown."""

from __future__ import annotations

from engine.algebra.distinct.stage import Distinct


def render_stage(stage: Distinct) -> list[str]:
    return ["distinct"]
