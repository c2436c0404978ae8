"""Where rows of a query leave, from its scans up: what keeps its answer from being a stream.

Rows leave an answer by its text, where a window moves, a table changes or an operator gives a row up: update
patterns say that. And they leave by RETAIN, under which a stream lets go of every row sooner or later,
whatever the windows over it. Whether rows of an answer ever leave is for :func:`leave` to say.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from engine.language.query import Query, Scan
from engine.language.render import render_name, render_stage, render_window
from engine.language.update_patterns import Pattern, edges_of, update_patterns
from engine.model.changes import Operator
from engine.model.source import SourceName


def leave(query: Query, tables: Container[SourceName], operator: Operator) -> bool:
    """Whether rows ever leave an answer, as far as an operator of its changes sees it: ISTREAM does not see
    what retention takes, all others do. tables: which sources are.
    """
    return operator != "istream" or update_patterns(query, tables)[-1] > Pattern.MON


def exits(query: Query, tables: Container[SourceName], above: Pattern) -> Iterator[str]:
    """In words, each scan and each stage whose rows come and go in a way that is more than ``above``, those
    below before those above them. tables: which sources are. O(stages^2) for all.
    """
    scan, *edges = edges_of(query, tables)
    if scan.pattern > above:
        yield _leaf(query.scan, tables)
    for stage, edge in zip(query.stages, edges, strict=True):
        if stage.right_input is not None:
            yield from exits(stage.right_input, tables, above)
        if edge.pattern > above:
            yield f"the operator {render_stage(stage)[0]!r}"


def _leaf(scan: Scan, tables: Container[SourceName]) -> str:
    name = render_name(scan.source)
    if scan.source in tables:
        return f"the table {name}"
    return f"the window {render_window(scan.window)!r} of {name}"
