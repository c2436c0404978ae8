"""Texts proposed instead of a query's, over the rows that its sources hold now."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.dataflow.cost.estimated_rows import estimated_rows
from engine.language.query import Query
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.tolerance import Tolerance
from engine.operators.scan import ScanAt
from engine.overload.proposals.proposal import Proposal
from engine.overload.proposals.propose import propose
from engine.overload.proposals.sources_in_text import Catalogue
from engine.sources.source_view import SourceView

ROW_BYTES = 64.0
"""Bytes that a row is taken to have in a source that holds none yet."""

ORIGIN_BYTES = 20
"""Instant, partition and offset of a row."""


def proposals_for(
    query: Query,
    sql: str,
    catalogue: Catalogue,
    sources: Mapping[SourceName, SourceView],
    at: Mapping[SourceName, ScanAt],
    limits: Limits,
    bind: Callable[[str], Query],
    tolerance: Tolerance,
) -> tuple[Proposal, ...]:
    """Proposes cheaper texts for a query that the text ``sql`` is bound to. at: what its sources hold.
    tolerance: what the query allows.
    """
    if query.has_streams:  # what a shorter window below one changes is not known
        return ()
    row_bytes = {name: _row_bytes(sources[name]) for name in query.sources}
    return propose(
        query,
        sql,
        catalogue,
        limits,
        bind,
        lambda inner: list(estimated_rows(inner, at)),
        row_bytes,
        tolerance,
    )


def _row_bytes(source: SourceView) -> float:
    """Returns the bytes of a row: its columns, its instant and its origin; strings that tables hold are not
    counted.
    """
    parts = source.rows.parts
    if not parts:
        return ROW_BYTES
    return ORIGIN_BYTES + float(sum(column.values.itemsize for column in parts[-1].columns))
