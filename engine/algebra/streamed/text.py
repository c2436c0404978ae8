"""How a window over changes is shown."""

from __future__ import annotations

from engine.algebra.streamed.stage import Streamed
from engine.language.render import render_sample, render_window


def render_stage(stage: Streamed) -> list[str]:
    sampled = "" if stage.sample is None else f"{render_sample(stage.sample)}, "
    return [f"{stage.operator} {sampled}window {render_window(stage.window)}"]
