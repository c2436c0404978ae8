"""Streams of subqueries, as evaluation asks for them: the elements that a window holds.

They depend on what the subquery gave at earlier instants, which is worked out by a floor above
(:mod:`engine.changes.streams`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from engine.algebra.streamed.stage import Streamed
from engine.language.query import Query
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.scan import ScanAt, Scanned


class StreamSource(Protocol):
    """Gives streams of subqueries."""

    def __call__(
        self, below: Query, stage: Streamed, at: Mapping[SourceName, ScanAt], limits: Limits
    ) -> Scanned:
        """The elements of ``stage`` over ``below`` that its window holds, in order, and from when on these
        are known; None: all are. at: how all sources of the query stand at the instant.

        Raises LimitExceeded.
        """
        ...
