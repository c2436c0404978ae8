"""The client for asyncio: the calls of :mod:`tureen.client`, by HTTP, each to be awaited.

    async with tureen.connect_async() as client:
        query = await client.register("SELECT carrier, delay FROM flights [RANGE 1 DAY] WHERE delay > 120")
        answer = await query.snapshot()
        answer.to_pandas()

A client belongs to one event loop; its tasks may share it. What is sent, read and sent again is that of
:mod:`tureen.calls`, so both clients answer and refuse alike.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Unpack

from tureen import calls
from tureen.answers import Dropped, EndedQueries, Listing, Matches, Promised
from tureen.builder import Select
from tureen.calls import ChangedOptions, Record
from tureen.changes_callbacks import AsyncSubscription, Callback, OnError, awaiting
from tureen.changes_feed import AsyncChangeFeed, Options, wishes_of
from tureen.client import DIFFERENCE_DEFAULT, MATCHES_DEFAULT, ONCE, TIMEOUT_DEFAULT_S, broker_url
from tureen.errors import UnknownQuery
from tureen.facts import QueryStatus, Source
from tureen.folding import ROWS_MAX
from tureen.http_client import AsyncHttp
from tureen.live import AsyncLiveAnswer
from tureen.period import At, asked_at
from tureen.protocol import Handle, SnapshotFormat, new_handle
from tureen.query import Handled
from tureen.settling import dropped, executed, registered
from tureen.snapshot import Instant, Reply, Snapshot, instant_ms
from tureen.texts import Said, period_said, published, published_many, said_of, unconfirmed
from tureen.transport import WAIT_DEFAULT_S, Parameter, Publication


class AsyncQuery(Handled["AsyncClient"]):
    """A registered query, by its handle; as :class:`tureen.Query`, to be awaited."""

    async def status(self) -> QueryStatus:
        """How it stands now. Raises UnknownQuery."""
        return await self._client.status(self.handle)

    async def snapshot(self, at: At = None, *, archive: bool | None = None) -> Snapshot:
        """Its answer now, or as of an earlier instant, or over a period: :meth:`AsyncClient.snapshot`."""
        return await self._client.snapshot(self.handle, at=at, archive=archive)

    async def difference(
        self,
        since: Instant,
        until: Instant | None = None,
        *,
        archive: bool | None = None,
        limit: int = DIFFERENCE_DEFAULT,
    ) -> dict[str, Any]:
        """Which of its rows came and went between two instants: :meth:`AsyncClient.difference`."""
        return await self._client.difference(self.handle, since, until, archive=archive, limit=limit)

    def changes(self, since: str | None = None, **options: Unpack[Options]) -> AsyncChangeFeed:
        """Its answer and what changes in it, or what changed behind a position, for ``async for``."""
        return self._client.changes(self.handle, since, **options)

    def on_change(
        self,
        callback: Callback,
        since: str | None = None,
        *,
        on_error: OnError | None = None,
        **options: Unpack[Options],
    ) -> AsyncSubscription:
        """Call back, in a task, with its answer and each of its changes; callbacks may be coroutines."""
        return AsyncSubscription(self.changes(since, **options), awaiting(callback, on_error), since)

    async def follow(
        self,
        *,
        key: Sequence[str] = (),
        rows_max: int = ROWS_MAX,
        timeout: float = TIMEOUT_DEFAULT_S,
        **options: Unpack[Options],
    ) -> AsyncLiveAnswer:
        """Its answer, kept current in memory by a task until it is stopped."""
        live = AsyncLiveAnswer(self.changes(**options), key=key, rows_max=rows_max)
        return await live.ready(timeout)

    async def alter(
        self,
        sql: str | Select | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        wait: float = WAIT_DEFAULT_S,
    ) -> QueryStatus:
        """Give it another text while it runs: :meth:`tureen.Client.alter`."""
        status = await self._client.alter(
            self.handle, sql, template=template, parameters=parameters, wait=wait
        )
        self.sql = status.sql
        return status

    async def unregister(self) -> None:
        """End it; the handle opens nothing any more. Raises UnknownQuery."""
        await self._client.unregister(self.handle)

    async def pause(self, *, release: bool = False) -> QueryStatus:
        """Stop serving it until :meth:`resume`: feeds are silent, and there is no answer.

        release: rows are not kept for its windows either, so that its answer may be incomplete afterwards.
        Raises UnknownQuery.
        """
        return await self._client.change(self.handle, paused=True, release=release)

    async def resume(self) -> QueryStatus:
        """Serve it again; whoever follows it is told at once what changed meanwhile. Raises UnknownQuery."""
        return await self._client.change(self.handle, paused=False)

    async def set_maintenance(self, maintenance: str) -> QueryStatus:
        """How its answer is maintained: auto, none, lazy or eager. Raises UnknownQuery, OptionRefused."""
        return await self._client.change(self.handle, maintenance=maintenance)

    async def set_strategy(
        self, strategy: str, *, structure: str | None = None, partitions: int | str | None = None
    ) -> QueryStatus:
        """How its operators keep rows until they leave: auto, nt, direct or upa. As
        :meth:`tureen.Query.set_strategy`. Raises UnknownQuery, OptionRefused.
        """
        return await self._client.change(
            self.handle, strategy=strategy, structure=structure, partitions=partitions
        )

    async def plan(self, *, analyze: bool = False) -> Mapping[str, Any]:
        """How its answer comes about; analyze: evaluate it once. Raises UnknownQuery."""
        return await self._client.plan(self.handle, analyze=analyze)

    async def proposals(self) -> list[dict[str, Any]]:
        """Other texts that use fewer resources, each with what it saves and costs. Raises UnknownQuery."""
        return await self._client.proposals(self.handle)


class AsyncClient:
    """A connection to one broker, for asyncio. Close it, or use it in an ``async with``.

    Methods take, return and raise what those of :class:`tureen.Client` do; one a request.
    """

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(self, sql: str, *, wait: float = WAIT_DEFAULT_S) -> Source:
        """Create a stream, a table or a view. Raises QueryError, SourceConflict."""
        return await self._http.run(calls.create(sql, wait))

    async def drop(self, name: str, *, cascade: bool = False, wait: float = WAIT_DEFAULT_S) -> Dropped:
        """Drop a stream, a table or a view that nothing reads; cascade: with what reads it."""
        return await self._http.run(dropped(name, cascade, wait))

    async def heartbeat(self, source: str, ms: int, partition: int | None = None) -> Promised:
        """Promise that no row of a stream below ms (since 1970) follows in a partition; None: in any.

        Raises UnknownSource, TureenError: the stream does not take it; BrokerUnavailable: it has yet to read
        what was there before.
        """
        return await self._http.run(calls.heartbeat(source, ms, partition))

    async def register(
        self,
        sql: str | Select | None = None,
        handle: str | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        wait: float = WAIT_DEFAULT_S,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> AsyncQuery:
        """Register a standing query and wait until it stands. Raises QueryError, HandleInUse, NameInUse."""
        publication = published(said_of(sql, template, parameters), handle, options, name)
        with unconfirmed(publication):
            query = (await self._register([publication], wait))[0]
            if query.state == "ERROR" and query.error is not None:
                raise query.error
        return query

    async def register_many(
        self,
        statements: Iterable[Said | tuple[Said, str]],
        *,
        wait: float = 4 * WAIT_DEFAULT_S,
        options: Mapping[str, Any] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[AsyncQuery]:
        """Register many at once; the answers are in the same order, refusals among them."""
        publications = published_many(statements, options)
        return await self._register(publications, wait, progress) if publications else []

    async def _register(
        self, publications: list[Publication], wait: float, progress: Callable[[int], None] | None = None
    ) -> list[AsyncQuery]:
        statuses = await self._http.run(registered(publications, wait, progress))
        return [
            AsyncQuery(
                self, one.handle, sql=one.sql, state=status.state, error=status.error, facts=status.facts
            )
            for one, status in zip(publications, statuses, strict=True)
        ]

    async def ask(
        self,
        sql: str | Select | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        at: At = None,
        archive: bool | None = None,
        wait: float = WAIT_DEFAULT_S,
    ) -> Snapshot:
        """The answer of a SELECT, once: it stands no longer than that takes, also where the task is
        cancelled. Raises as :meth:`tureen.Client.ask`."""
        said, period = period_said(said_of(sql, template, parameters))
        publication = published(said, new_handle(), ONCE)
        try:
            (query,) = await self._register([publication], wait)
            if query.error is not None:
                raise query.error
            return await query.snapshot(at if period is None else period, archive=archive)
        finally:
            with contextlib.suppress(UnknownQuery):
                await self.unregister(publication.handle)

    def query(self, handle: str) -> AsyncQuery:
        """The query of a handle; nothing is asked, so it may not exist."""
        return AsyncQuery(self, handle)

    async def status(self, handle: str) -> QueryStatus:
        """How a query stands. Raises UnknownQuery."""
        return await self._http.run(calls.status(handle))

    async def snapshot(self, handle: str, at: At = None, *, archive: bool | None = None) -> Snapshot:
        """The answer of a query; at, archive: as :meth:`tureen.Client.snapshot`.

        Raises UnknownQuery, InstantOutOfRange, LimitExceeded, HistoryUnavailable.
        """
        return Snapshot.of(await self.fetch(handle, "arrow", at, archive=archive))

    async def difference(
        self,
        handle: str,
        since: Instant,
        until: Instant | None = None,
        *,
        archive: bool | None = None,
        limit: int = DIFFERENCE_DEFAULT,
    ) -> dict[str, Any]:
        """What came and went in an answer between two instants: :meth:`tureen.Client.difference`."""
        until_ms = None if until is None else instant_ms(until)
        return await self._http.run(calls.difference(handle, instant_ms(since), until_ms, archive, limit))

    async def fetch(
        self, handle: str, form: SnapshotFormat, at: At = None, *, archive: bool | None = None
    ) -> Reply:
        """The answer as bytes in a format, as the broker wrote them: :meth:`tureen.Client.fetch`."""
        return await self._http.run(calls.snapshot(handle, form, asked_at(at), archive))

    def changes(self, handle: str, since: str | None = None, **options: Unpack[Options]) -> AsyncChangeFeed:
        """The answer of a query, then its changes as they come; or those behind a position."""
        return AsyncChangeFeed(self._http.connections, self._http.url, handle, wishes_of(since, options))

    async def alter(
        self,
        handle: str,
        sql: str | Select | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        wait: float = WAIT_DEFAULT_S,
    ) -> QueryStatus:
        """Give a query another text while it runs: :meth:`tureen.Client.alter`."""
        publication = published(said_of(sql, template, parameters), handle, None)
        return await self._http.run(calls.alter(publication, wait))

    async def unregister(self, handle: str) -> None:
        """End a query, by its handle or, for the operator, its public id. Raises UnknownQuery."""
        await self._http.run(calls.unregister(handle))

    async def unregister_many(self, handles: Iterable[str]) -> EndedQueries:
        """End queries in one call: :meth:`tureen.Client.unregister_many`."""
        return await self._http.run(calls.unregister_many(list(handles)))

    async def unregister_all_of(self, source: str) -> EndedQueries:
        """End all queries that read a source: :meth:`tureen.Client.unregister_all_of`."""
        return await self._http.run(calls.unregister_all_of(source))

    async def change(self, handle: str, **options: Unpack[ChangedOptions]) -> QueryStatus:
        """Change options of a query while it runs; what is None stays. Raises UnknownQuery, OptionRefused."""
        return await self._http.run(calls.change(handle, **options))

    async def execute(self, sql: str, *, wait: float = WAIT_DEFAULT_S) -> Listing:
        """Run a statement that is no SELECT. Raises QueryError, and whatever the thing it does raises."""
        return await self._http.run(executed(sql, wait))

    async def plan(self, handle: str, *, analyze: bool = False) -> Mapping[str, Any]:
        """How the answer of a query comes about. Raises UnknownQuery."""
        return await self._http.run(calls.plan(handle, analyze))

    async def proposals(self, handle: str) -> list[dict[str, Any]]:
        """Other texts for a query that use fewer resources, each with what it saves and costs: ``alter`` the
        query to approve one. Raises UnknownQuery.
        """
        return await self._http.run(calls.proposals(handle))

    async def plan_file(self, handle: str) -> dict[str, Any]:
        """The plan of a query as a file has it, by its handle or id, by HTTP. Raises UnknownQuery."""
        return await self._http.run(calls.plan_file(handle))

    async def validate_plan(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Check a plan, by HTTP: its text (``sql``), its columns, and the plan as it is exported.

        Raises PlanRefused.
        """
        return await self._http.run(calls.validate_plan(plan))

    async def apply_plan(self, handle: str, plan: Mapping[str, Any]) -> QueryStatus:
        """Run a query as a plan says: options, and attributes of what it shares, by HTTP; no answer changes.

        Raises UnknownQuery, PlanRefused, PlanIsAnother, OptionRefused.
        """
        return await self._http.run(calls.apply_plan(handle, plan))

    async def register_plan(
        self, plan: Mapping[str, Any], handle: str | None = None, *, wait: float = WAIT_DEFAULT_S
    ) -> AsyncQuery:
        """Register a plan. Raises PlanRefused, and as :meth:`register`."""
        own = Handle(handle or new_handle())
        status = await self._http.run(calls.register_plan(own, plan, wait))
        return AsyncQuery(
            self, own, sql=status.sql or "", state=status.state, error=status.error, facts=status.facts
        )

    async def entities(self, *, kind: str | None = None, query: str | None = None) -> list[dict[str, Any]]:
        """Every part of the running plans with what it uses. Raises UnknownQuery."""
        return await self._http.run(calls.entities(kind, query))

    async def entity(self, id_: str) -> Mapping[str, Any]:
        """One of them with all its attributes. Raises UnknownEntity."""
        return await self._http.run(calls.entity(id_))

    async def set_entity(
        self, id_: str, values: Mapping[str, Any], *, if_version: int | None = None
    ) -> Mapping[str, Any]:
        """Set attributes of one, all or none. Raises UnknownEntity, AttributeRefused, EditConflict, and
        NotAllowed.
        """
        return await self._http.run(calls.set_entity(id_, values, if_version))

    async def match(
        self,
        source: str,
        records: Record | Iterable[Record],
        *,
        limit: int = MATCHES_DEFAULT,
    ) -> list[Matches]:
        """Which standing queries each record satisfies. Raises UnknownSource."""
        return await self._http.run(calls.match(source, records, limit))

    async def trace(self, source: str, partition: int, offset: int, *, limit: int = 20) -> Mapping[str, Any]:
        """The way of one record from its offset to the answers. Raises NotAllowed, UnknownSource."""
        return await self._http.run(calls.trace(source, partition, offset, limit))

    async def queries(self) -> list[QueryStatus]:
        """All standing queries, by their public ids."""
        return await self._http.run(calls.queries())

    async def sources(self) -> list[Source]:
        """All streams, tables and views."""
        return await self._http.run(calls.sources())

    async def infer(
        self, topic: str | None = None, name: str | None = None, *, sql: str | None = None
    ) -> dict[str, Any]:
        """A CREATE that reads a topic, guessed from its newest records, as ``sql`` (None: nothing tells one),
        and ``warnings``; for the operator. name: of the source. sql: a CREATE ... FROM TOPIC in their place.
        Raises TopicMissing, KafkaUnavailable, QueryError, NotAllowed.
        """
        return await self._http.run(calls.infer(topic, name, sql))

    async def summaries(self) -> list[dict[str, Any]]:
        """All summaries of streams: their definitions, their state, and how much they hold."""
        return await self._http.run(calls.summaries())

    async def summary(self, name: str) -> dict[str, Any]:
        """One summary: its granularities and zones, why each zone ended, how far its estimates may err.

        Raises UnknownSummary.
        """
        return await self._http.run(calls.summary(name))

    async def retry(self) -> list[int]:
        """Have shards that the broker holds try to come back; their numbers."""
        return await self._http.run(calls.retry())

    async def service(self) -> Mapping[str, Any]:
        """The broker's own figures, as ``GET /status`` gives them."""
        return await self._http.run(calls.service())

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def connect_async(
    url: str | None = None, token: str | None = None, *, timeout: float = TIMEOUT_DEFAULT_S
) -> AsyncClient:
    """A client for asyncio of the broker at ``url``; nothing is sent before the first call.

    Arguments as those of :func:`tureen.connect`.

    >>> import asyncio
    >>> async def main() -> None:
    ...     async with connect_async("http://127.0.0.1:1") as client:
    ...         await client.queries()
    >>> asyncio.run(main())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tureen.errors.BrokerUnavailable: no broker answers at http://127.0.0.1:1: ...
    hint: start `tureen serve` and wait for its Ready, or give the address with --url or TUREEN_URL
    """
    return AsyncClient(AsyncHttp(broker_url(url), token, timeout))
