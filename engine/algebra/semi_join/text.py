"""How IN and EXISTS are shown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.semi_join.stage import SemiJoin
from engine.language.render import join_words, render_expression, render_inner


def render_stage(stage: SemiJoin) -> list[str]:
    word = "anti join" if stage.negated else "semi join"
    on = f" on {', '.join(render_expression(key) for key in stage.keys)}" if stage.keys else ""
    unknown = ", NULL is unknown" if stage.null_aware else ""
    return [f"{word}{on}{unknown}", *render_inner(stage.inner)]


def operator_words(stage: SemiJoin, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return join_words(lines)
