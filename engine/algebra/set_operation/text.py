"""How UNION, INTERSECT and EXCEPT are shown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.set_operation.stage import SetOperation
from engine.language.render import render_inner, render_name


def render_stage(stage: SetOperation) -> list[str]:
    names = [name for name, _ in stage.inner.columns]
    on = [] if stage.on is None else [render_name(names[place]) for _, place in stage.on]
    by = "" if stage.on is None else f" on {', '.join(on)}"
    return [f"{stage.kind}{' all' if stage.all else ''}{by}", *render_inner(stage.inner)]


def operator_words(stage: SetOperation, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    word, _, by = lines[0].partition(" on ")
    return word, (f"on {by}",) if by else ()
