"""What stands on a shard, as its last step left it: that is what commands are compared with.

Used by the shard's thread alone, but for ``sources`` and ``summaries`` between recovery and the first
command.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from broker.shard.shard_command import Standing
from engine.engine import Engine
from engine.model.source import Derived, Stream
from engine.model.summary import SummaryName
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.summaries import NamedSummary
from engine.views.view import View
from topics.wording import said


class ShardState:
    """queries: what their registrations said, by id. sources: streams and views by name, oldest first.
    summaries: by name.
    """

    def __init__(self) -> None:
        self.queries: dict[str, Standing] = {}
        self.sources: dict[str, Stream | Derived] = {}
        self.summaries: dict[SummaryName, NamedSummary] = {}
        self.swapped: list[AdmittedQuery] = []
        """Queries that were swapped out when the shard came back, until somebody takes them."""

    def begin(self, view: View, engine: Engine) -> None:
        """All that came back."""
        standing = (query.registration for query in view.standing.values())
        self.swapped = list(engine.swapping.admitted())
        swapped = (one.registration for one in self.swapped)
        self.queries = {
            one.query_id: (said(one.sql, one.parameters), one.options) for one in chain(standing, swapped)
        }
        self.sources = dict(engine.catalogue)
        self.summaries = dict(engine.summaries)

    def forget(self, query_ids: Iterable[str]) -> None:
        """Forget queries that went, those of them that stood."""
        for query_id in query_ids:
            self.queries.pop(query_id, None)
