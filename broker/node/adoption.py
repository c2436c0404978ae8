"""What shards brought back from their stores and journals, learnt into the directory when the worker starts.

First each shard's streams and queries, then the views, which may read streams of several shards, then where
queries emit. The control process says everything again after that, so what this version of the broker
refuses is only passed over here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from broker.base.entries import QueryEntry, SourceEntry, SummaryEntry, ViewEntry
from broker.base.placement import of_view
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.shard.shard import Shard
from engine.changes.output import output_of
from engine.language.query import Query
from engine.language.statements import parse
from engine.language.templates import BoundTemplate
from engine.model.constraint import referred_to
from engine.model.maintenance import QueryOptions
from engine.model.source import Derived, Stream
from engine.model.step import Registration
from engine.operators.gather import schema_of
from engine.queries.admitted_query import AdmittedQuery
from topics.outputs import Outputs, destination, emits, facts
from tureen.errors import QueryError, TureenError
from tureen.protocol import SUMMARY_KEY, TopicNames


@dataclass(frozen=True, slots=True)
class Adopted:
    """A query of a shard, warm or swapped out."""

    registration: Registration
    template: BoundTemplate
    paused: bool

    @classmethod
    def swapped(cls, query: AdmittedQuery) -> Adopted:
        """One that is swapped out."""
        said = query.registration
        return cls(said, query.template, QueryOptions.of(said.options).paused)

    @property
    def query_id(self) -> str:
        return self.registration.query_id


def adopt_shard(shard: Shard, directory: Directory, hosting: Hosting) -> None:
    """The streams, summaries and queries of a shard that has recovered."""
    standing = [
        *(Adopted(one.registration, one.template, one.paused) for one in shard.view().standing.values()),
        *(Adopted.swapped(one) for one in shard.swapped()),
    ]
    for name, (stream, sql) in shard.streams().items():
        if shard.number == directory.home_of([name]):
            directory.sources[name] = SourceEntry(stream, sql, shard.number)
        else:
            readers = (one.query_id for one in standing if name in one.template.sources)
            hosting.found(shard.number, name, readers)
    for name, summary in shard.summaries().items():
        if shard.number == directory.home_of([summary.definition.stream]):
            directory.summaries[name] = SummaryEntry(summary.definition, summary.sql, shard.number)
        else:
            users = (one.query_id for one in standing if name in one.template.summaries)
            hosting.found(shard.number, SUMMARY_KEY + name, users)
    for one in standing:
        said = one.registration
        directory.queries[one.query_id] = QueryEntry(
            said.sql,
            "PAUSED" if one.paused else "RUNNING",
            None,
            shard.number,
            one.template.sources,
            said.options,
            one.template.uses,
            parameters=list(held) if isinstance(held := said.parameters, tuple) else held,
            summaries=one.template.summaries,
        )


def adopt_views(shards: Iterable[Shard], directory: Directory, hosting: Hosting) -> None:
    """The views of shards whose streams the directory knows already, and the replicas that views and streams
    need.
    """
    derived = [(one, shard.number) for shard in shards for one in shard.derived()]
    engines = directory.engines
    known: dict[str, Stream | Derived] = dict(directory.catalogue)
    known.update((one.name, one) for one, _ in derived)
    for one, shard in derived:
        with contextlib.suppress(QueryError):  # a view that this version refuses is shown all the same
            query = parse(one.sql, known, engines.limits, functions=engines.functions)
            assert isinstance(query, Query)
            if shard == directory.home_of(query.sources):
                directory.views[one.name] = ViewEntry(one, shard, query.sources, query.uses)
                continue
            several = [name for name, entry in directory.queries.items() if entry.shard == shard]
            hosting.found(shard, one.name, several)
            continue
        directory.views[one.name] = ViewEntry(one, shard, (), ())
    for name, view in directory.views.items():
        hosting.need_more(of_view(name), view.shard, (*view.sources, *view.uses))
    for name, entry in directory.sources.items():
        hosting.need_more(of_view(name), entry.shard, referred_to(entry.stream.constraints))


def adopt_outputs(directory: Directory, outputs: Outputs, names: TopicNames) -> None:
    """Where queries emit: those that come later must agree. Any thread, before commands are carried out."""
    for name, entry in directory.queries.items():
        if entry.sql is None or not emits(entry.sql):
            continue
        with contextlib.suppress(TureenError):  # one that this version refuses is said again, and told so
            query = directory.parse(entry.sql, entry.parameters)
            assert isinstance(query, Query)
            to = destination(names, output_of(query, directory.streams()))
            if to is not None:
                entry.output = facts(to, schema_of(query.columns))
                outputs.agree(name, to, query.sources)
