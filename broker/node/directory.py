"""What stands on this worker and what does not, by name, and on which shards: queries, streams, tables, views
and summaries.

The one place that says which shard something lives on, and against which texts are understood. Its books are
written on the event loop alone, by those who carry out commands, from outcomes; readers on the loop need no
lock, those in other threads take a copy. Whoever puts in or takes out a stream or a view says so
(:meth:`Directory.catalogue_changed`), since texts may then mean something else.

The rows, NOW and answers of what stands are in the shards' views.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from broker.base import options as query_options
from broker.base.entries import QueryEntry, SourceEntry, SummaryEntry, ViewEntry, WaitingView
from broker.base.parsed import Parsed
from broker.base.placement import shard_of
from broker.node.query_table import QueryTable
from broker.runtime.engines import Engines
from broker.shard.shard_command import Bound
from engine.language.query import Statement
from engine.model.source import Derived, SourceName, Stream
from engine.model.summary import SummaryDefinition, SummaryName
from engine.queries.definitions import Definitions, referring
from engine.queries.possible_options import require_possible
from engine.queries.summaries import beside, refuse_unclear
from topics.wording import Values


class Directory:
    """queries: by their ids, standing or not. sources: streams and tables that stand. views: that stand.
    waiting: views that cannot stand yet. summaries: those of streams that stand, by their own names.
    waiting_summaries: those that cannot stand yet.
    """

    def __init__(self, engines: Engines, shards: int) -> None:
        """engines: for limits and functions. shards: how many there may be."""
        self.engines = engines
        self.queries = QueryTable()
        self.reserved: dict[str, QueryEntry] = {}
        """By query id: registrations that are being written, or were and have not been carried out yet."""
        self.sources: dict[str, SourceEntry] = {}
        self.views: dict[str, ViewEntry] = {}
        self.waiting: dict[str, WaitingView] = {}
        self.summaries: dict[str, SummaryEntry] = {}
        self.waiting_summaries: dict[str, WaitingView] = {}
        self.unheard: set[str] = set()
        """Queries that the control process has yet to say again: a summary of theirs was dropped, or they may
        come now that another of their ids has gone.
        """
        self.paused_by_broker: set[str] = set()
        """Queries that the broker itself has paused."""
        self._shards = shards
        self._parsed = self._against({})

    # --- where things live --------------------------------------------------------------------------

    def home_of(self, sources: Iterable[str]) -> int:
        """The shard that a stream is for, or what reads just these sources."""
        return shard_of(sources, self._shards)

    def standing(self) -> int:
        """How many queries stand. O(shards)."""
        return self.queries.standing

    def found(self, name: str) -> QueryEntry | None:
        """What is known of a query, also of one whose registration is on its way. O(1)."""
        return self.queries.get(name) or self.reserved.get(name)

    def readers(self, name: str) -> int:
        """How many queries stand on a source or a view. O(1)."""
        return self.queries.readers[name]

    def users(self, summary: str) -> list[str]:
        """The ids of the queries that stand and use a summary, sorted. O(queries)."""
        return sorted(
            name
            for name, entry in self.queries.items()
            if entry.shard is not None and summary in entry.summaries
        )

    def summaries_of(self, stream: str) -> list[str]:
        """The names of the summaries of a stream, sorted. O(summaries)."""
        return sorted(name for name, one in self.summaries.items() if one.definition.stream == stream)

    def refuse_if_unclear(self, coming: SummaryDefinition) -> None:
        """Raise SummaryConflict where a second summary of a column would leave it open which of the two a
        query that stands, on whichever shard, means by SUMMARY. O(queries). Any thread.
        """
        standing = {name: one.definition for name, one in self.summaries.items()}
        parsed = self._against_summaries(self.catalogue, {**standing, coming.name: coming})
        texts = (
            (entry.sql, entry.parameters)
            for name in beside(coming, standing)
            for query in self.users(name)
            if (entry := self.queries[query]).sql is not None
        )
        refuse_unclear(coming, standing, texts, lambda text: parsed.read(*text))

    def streams(self) -> dict[SourceName, Stream]:
        """Streams and tables that stand; a new mapping."""
        return {entry.stream.name: entry.stream for entry in self.sources.values()}

    # --- what texts mean ----------------------------------------------------------------------------

    def catalogue_changed(self) -> None:
        """A stream, a view or a summary has come, changed or gone."""
        stands: dict[str, Stream | Derived] = {name: entry.stream for name, entry in self.sources.items()}
        stands.update((name, entry.derived) for name, entry in self.views.items())
        self._parsed = self._against(stands)

    @property
    def catalogue(self) -> Mapping[str, Stream | Derived]:
        """Every stream and view that stands; never changed in place."""
        return self._parsed.catalogue

    @property
    def definitions(self) -> Definitions:
        """What stands, for decisions about statements."""
        return Definitions(
            self.catalogue,
            {name: one.definition for name, one in self.summaries.items()},
            readers=self.readers,
            views=lambda name: (
                other for other, one in self.views.items() if other != name and name in one.reads
            ),
            referring=lambda name: referring(self.streams().values(), name),
            users=lambda name: len(self.users(name)),
        )

    async def understand(self, sql: str, parameters: Values | None = None) -> Statement:
        """As :meth:`parse`, in another thread, since a text of a new kind may take a millisecond."""
        return await asyncio.to_thread(self._parsed.statement, sql, parameters)

    def parse(self, sql: str, parameters: Values | None = None) -> Statement:
        """A statement against what stands now. Raises QueryError, LimitExceeded. Any thread."""
        return self._parsed.statement(sql, parameters)

    def bound(self, sql: str, parameters: Values | None = None) -> Bound:
        """A text bound against what stands now; without a tree where a template serves. Raises as
        :meth:`parse`. Any thread.
        """
        parsed = self._parsed
        return Bound(parsed.read(sql, parameters), parsed.catalogue, parsed.summaries)

    def admitted(self, options: Mapping[str, Any], sql: str, parameters: Values | None = None) -> Bound:
        """As :meth:`bound`, with options that the query can have. Raises OptionRefused too. Any thread."""
        query_options.check(options)
        bound = self.bound(sql, parameters)
        if bound.read.template is not None:
            require_possible(query_options.as_text(options), lambda: bound.read.query, bound.catalogue)
        return bound

    def _against(self, catalogue: Mapping[str, Stream | Derived]) -> Parsed:
        return self._against_summaries(
            catalogue, {name: one.definition for name, one in self.summaries.items()}
        )

    def _against_summaries(
        self, catalogue: Mapping[str, Stream | Derived], summaries: Mapping[SummaryName, SummaryDefinition]
    ) -> Parsed:
        return Parsed(catalogue, self.engines.limits, self.engines.functions, summaries)
