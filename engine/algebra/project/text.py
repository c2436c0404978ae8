"""How SELECT is shown."""

from __future__ import annotations

from engine.algebra.project.stage import Project
from engine.language.render import render_output


def render_stage(stage: Project) -> list[str]:
    return ["project", *(f"  {render_output(output)}" for output in stage.outputs)]
