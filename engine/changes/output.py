"""What leaves a query when its answer changes: which changes, by which key, and where to if it emits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.changes.operator import operator_over
from engine.changes.result_key import result_key
from engine.language.query import Emit, Query
from engine.model.changes import Operator
from engine.model.source import SourceName, Stream


@dataclass(frozen=True, slots=True)
class ChangesOutput:
    """operator: which of the changes. emit: where to and how, None of a query that emits nothing. key: the
    columns that together tell its rows apart, none where there is one row at most; None: nothing but all
    values do, if they.
    """

    operator: Operator
    emit: Emit | None
    key: tuple[int, ...] | None


def continues(before: Query, after: Query, streams: Mapping[SourceName, Stream]) -> bool:
    """Whether the changes of a query continue when its text is altered: they keep their columns, operator,
    destination and key, so that the difference of both answers is told in the form of any other change.
    O(stages * columns).
    """
    if before.columns != after.columns:
        return False
    old, new = output_of(before, streams), output_of(after, streams)
    return old.operator == new.operator and old.emit == new.emit and (old.emit is None or old.key == new.key)


def output_of(query: Query, streams: Mapping[SourceName, Stream]) -> ChangesOutput:
    """That of a query over these streams and tables; there may be others among them. O(stages * columns)."""
    read = {name: streams[name] for name in query.sources}
    return ChangesOutput(operator_over(query, read), query.emit, result_key(query, read))
