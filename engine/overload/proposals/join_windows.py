"""Windows introduced into unbounded joins: each input is cut to what its stream retains (STREAM, section
5.1.1, which calls the outcome a band join).

Never below DISTINCT, nor on the right of a negation, as of window reduction.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.language.grammar import nodes
from engine.language.render import render_span
from engine.overload.proposals.proposal import Rewrite
from engine.overload.proposals.sources_in_text import SourceInText
from engine.overload.proposals.text import Edit, Tokens, edited
from engine.overload.proposals.window_reduction import written_span


def join_windows(sql: str, tokens: Tokens, source: SourceInText) -> Iterator[Rewrite]:
    """Proposes a window for one source that is joined without any."""
    window = source.window
    unbounded = window is None or (isinstance(window, nodes.UnboundedClause) and not window.args.get("slide"))
    if not unbounded or not source.above.unwindowed or source.above.grows_by_loss:
        return
    if window is not None and window.args.get("where") is not None:
        return
    span_ms = source.stream.retain_ms
    text = f"[RANGE {written_span(span_ms)}]"
    if window is None:
        end = tokens.end_of(source.item.args["this"].meta["start"])
        edit = Edit(end, end, " " + text)
    else:
        edit = Edit(*tokens.bracket(window.meta["start"]), text)
    yield Rewrite(
        "window into a join", source.name, f"unbounded to {render_span(span_ms)}", edited(sql, [edit])
    )
