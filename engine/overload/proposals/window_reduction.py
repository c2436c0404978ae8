"""Window reduction: half the length of a window, or what DOWN TO allows (STREAM, section 5.1.1).

Never at or below DISTINCT, nor on the right of a negation: the answer might grow.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.language.grammar import nodes
from engine.language.render import render_span
from engine.overload.proposals.proposal import Rewrite
from engine.overload.proposals.sources_in_text import SourceInText
from engine.overload.proposals.text import Edit, Tokens, edited

KEPT = 0.5
"""The share of the window that is kept, where the text does not say how short it may be."""


def window_reduction(sql: str, tokens: Tokens, source: SourceInText) -> Iterator[Rewrite]:
    """Proposes a shorter window for one source."""
    window = source.window
    if not isinstance(window, nodes.RangeClause) or source.above.grows_by_loss:
        return
    whole_ms = int(window.this)
    down_to = window.args.get("down_to")
    least_ms = int(whole_ms * KEPT) if down_to is None else int(down_to.this)
    if not 0 < least_ms < whole_ms:
        return
    start, end = tokens.duration(window.meta["start"])
    yield Rewrite(
        "window reduction",
        source.name,
        f"{render_span(whole_ms)} to {render_span(least_ms)}",
        edited(sql, [Edit(start, end, written_span(least_ms))]),
    )


def written_span(ms: int) -> str:
    """A length of time as SQL takes it."""
    text = render_span(ms)
    return f"{ms} MILLISECONDS" if text.endswith(" ms") else text.upper()
