"""A followed query: what is told of it, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.changes.operator import operator_over
from engine.changes.result_key import result_key
from engine.language.query import Query
from engine.model.changes import Occasion, Operator
from engine.queries.whole_answers import has_whole
from engine.sources.source import Source


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A followed query. asked: how often it was asked to be followed, besides what its text says. copies:
    equal rows of its answer have to be told apart. since: the step in which it began to be followed, where it
    was there before; None: when it came.
    """

    query: Query
    operator: Operator
    copies: bool
    asked: int = 0
    since: int | None = None

    @classmethod
    def of(cls, query: Query, sources: Mapping[str, Source]) -> Subscriber:
        """sources: those that there are."""
        emit = query.emit
        streams = {name: sources[name].stream for name in query.sources}
        operator = operator_over(query, streams)
        told_apart = emit is None or emit.format == "diff" or operator != "changes"
        copies = not told_apart and result_key(query, streams) is None
        return cls(query, operator, copies)

    def has_whole(self, occasion: Occasion) -> bool:
        """Whether its whole answer is told on an occasion."""
        return has_whole(self.query, self.operator, occasion)
