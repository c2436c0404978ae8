"""Answers of queries with a preference: the ordinary evaluation, over what was found for them alone.

Windows and operators are those of exact queries, so that each answer, but for aggregates, is part of the
exact one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.dataflow.graph import STREAMS
from engine.language.query import Query
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.found_scan import FoundAt
from engine.operators.pipeline import Evaluated, evaluate, evaluate_completed
from engine.operators.scan import ScanAt
from engine.promising.found import NOTHING, FoundPairs, FoundRows
from engine.views.estimated_aggregates import Completing, completed_calls, visited_part

Found = FoundRows | FoundPairs
"""For one query."""

NOTHING_YET = FoundRows(NOTHING)
"""For a query that is in no group."""


def found_at(query: Query, at: Mapping[SourceName, ScanAt], found: Found) -> Mapping[SourceName, ScanAt]:
    """The sources of a query as it sees them: of those that a visit chooses rows of, found rows alone."""
    if isinstance(found, FoundRows):
        return {name: FoundAt.of(one, found.rows, satisfied=True) for name, one in at.items()}
    seen = dict(at)
    first, second = [scan.source for scan in query.scans()][:2]
    left, right = found.rows(0), found.rows(1)
    if first == second:
        left = right = np.union1d(left, right)
    for name, rows in ((first, left), (second, right)):
        seen[name] = FoundAt.of(at[name], rows, satisfied=False)
    return seen


def evaluate_found(
    query: Query, at: Mapping[SourceName, ScanAt], found: Found, rows_max: int, limits: Limits
) -> Evaluated:
    """The answer of a query. at: how its sources stand. Raises LimitExceeded."""
    composites = found if isinstance(found, FoundPairs) else None
    seen = found_at(query, at, found)
    plain = evaluate(query, seen, rows_max, limits, composites=composites, streams=STREAMS)
    if not isinstance(found, FoundRows) or found.left is None:
        return plain
    calls = completed_calls(query, found.left.column, by_values=found.left.values is not None)
    if not calls:
        return plain
    completing = Completing(found.left, calls)
    completed = evaluate_completed(query, seen, rows_max, completing, limits, STREAMS)
    return replace(completed, visited=visited_part(plain.table, completed.table))
