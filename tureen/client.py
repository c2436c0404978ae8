"""The client: a connection to a broker, and the queries that were registered over it.

    with tureen.connect() as client:
        query = client.register("SELECT carrier, dep_delay FROM flights [RANGE 1 DAY] WHERE dep_delay > 120")
        keep_somewhere(query.handle)

    ...                                      # a day later, in another program

    with tureen.connect() as client:
        client.snapshot(handle).to_pandas()

A handle is a secret: whoever has it reads the answer. The query id that is derived from it is public.

With ``kafka=`` everything that touches a query goes through topics alone, and no broker needs to be
reachable by HTTP: streams and queries are published, outcomes come on the status topic, snapshots on a
reply topic of this client. ``sources``, statements, changes of queries and of answers, plans and matches
always go by HTTP; :mod:`tureen.topic_feed` and :mod:`tureen.results` read changes of answers from topics.
:mod:`tureen.async_client` is the same for asyncio, by HTTP alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Unpack

from tureen import calls
from tureen.answers import Dropped, EndedQueries, Listing, Matches, Promised
from tureen.builder import Select
from tureen.calls import ChangedOptions, Record
from tureen.changes_callbacks import Callback, OnError, Subscription, calling
from tureen.changes_feed import ChangeFeed, Options, wishes_of
from tureen.errors import UnknownQuery
from tureen.facts import QueryStatus, Source
from tureen.folding import ROWS_MAX
from tureen.http_client import HttpTransport
from tureen.live import LiveAnswer
from tureen.period import At, asked_at
from tureen.protocol import Handle, SnapshotFormat, new_handle
from tureen.query import Handled
from tureen.settling import executed
from tureen.snapshot import Instant, Reply, Snapshot, instant_ms
from tureen.texts import Said, period_said, published, published_many, said_of, unconfirmed
from tureen.transport import WAIT_DEFAULT_S, Parameter, Publication, Transport

URL_DEFAULT = "http://127.0.0.1:8080"
TIMEOUT_DEFAULT_S = 30.0
MATCHES_DEFAULT = 1_000
DIFFERENCE_DEFAULT = 1_000
"""Rows of each kind that a difference has at most."""
ONCE = {"maintenance": "none"}
"""Options of a query that is asked once."""


class Query(Handled["Client"]):
    """A registered query, by its handle. Costs nothing to make: nothing is asked before a call."""

    def status(self) -> QueryStatus:
        """How it stands now. Raises UnknownQuery."""
        return self._client.status(self.handle)

    def snapshot(self, at: At = None, *, archive: bool | None = None) -> Snapshot:
        """Its answer now, or as of an earlier instant, or over a period: :meth:`Client.snapshot`."""
        return self._client.snapshot(self.handle, at=at, archive=archive)

    def difference(
        self,
        since: Instant,
        until: Instant | None = None,
        *,
        archive: bool | None = None,
        limit: int = DIFFERENCE_DEFAULT,
    ) -> dict[str, Any]:
        """Which of its rows came and went between two instants: :meth:`Client.difference`."""
        return self._client.difference(self.handle, since, until, archive=archive, limit=limit)

    def changes(self, since: str | None = None, **options: Unpack[Options]) -> ChangeFeed:
        """Its answer and what changes in it, or what changed behind a position: :meth:`Client.changes`."""
        return self._client.changes(self.handle, since, **options)

    def on_change(
        self,
        callback: Callback,
        since: str | None = None,
        *,
        on_error: OnError | None = None,
        **options: Unpack[Options],
    ) -> Subscription:
        """Call back, in a thread, with its answer and each of its changes until the subscription is stopped.

        since and options: as :meth:`Client.changes`. on_error: called with what the callback raised, and the
        event; without it that ends the subscription.
        """
        return Subscription(self.changes(since, **options), calling(callback, on_error), since)

    def follow(
        self,
        *,
        key: Sequence[str] = (),
        rows_max: int = ROWS_MAX,
        timeout: float = TIMEOUT_DEFAULT_S,
        **options: Unpack[Options],
    ) -> LiveAnswer:
        """Its answer, kept current in memory by a thread until it is stopped.

        key: columns by which rows are to be found at once. rows_max: rows it may hold. timeout: seconds until
        the first answer is there. Raises as :meth:`Client.changes`, NotSupported for DSTREAM and RSTREAM.
        """
        live = LiveAnswer(self.changes(**options), key=key, rows_max=rows_max)
        return live.ready(timeout)

    def alter(
        self,
        sql: str | Select | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        wait: float = WAIT_DEFAULT_S,
    ) -> QueryStatus:
        """Give it another text while it runs: :meth:`Client.alter`."""
        status = self._client.alter(self.handle, sql, template=template, parameters=parameters, wait=wait)
        self.sql = status.sql
        return status

    def unregister(self) -> None:
        """End it; the handle opens nothing any more. Raises UnknownQuery."""
        self._client.unregister(self.handle)

    def pause(self, *, release: bool = False) -> QueryStatus:
        """Stop serving it until :meth:`resume`: feeds are silent, and there is no answer.

        release: rows are not kept for its windows either, so that its answer may be incomplete afterwards.
        Raises UnknownQuery.
        """
        return self._client.change(self.handle, paused=True, release=release)

    def resume(self) -> QueryStatus:
        """Serve it again; whoever follows it is told at once what changed meanwhile. Raises UnknownQuery."""
        return self._client.change(self.handle, paused=False)

    def set_maintenance(self, maintenance: str) -> QueryStatus:
        """How its answer is maintained: auto, none, lazy or eager. No answer changes.

        Raises UnknownQuery, OptionRefused.
        """
        return self._client.change(self.handle, maintenance=maintenance)

    def set_strategy(
        self, strategy: str, *, structure: str | None = None, partitions: int | str | None = None
    ) -> QueryStatus:
        """How its operators keep rows until they leave: auto, nt, direct or upa; of upa also in which
        structure (auto, partitioned, negative, indexed) and how many partitions. No answer changes, and no
        change is told again.

        Raises UnknownQuery, OptionRefused.
        """
        return self._client.change(self.handle, strategy=strategy, structure=structure, partitions=partitions)

    def plan(self, *, analyze: bool = False) -> Mapping[str, Any]:
        """How its answer comes about; analyze: evaluate it once, and tell rows and times as they were.

        Raises UnknownQuery.
        """
        return self._client.plan(self.handle, analyze=analyze)

    def proposals(self) -> list[dict[str, Any]]:
        """Other texts that use fewer resources, each with what it saves and costs. Raises UnknownQuery."""
        return self._client.proposals(self.handle)


class Client:
    """A connection to one broker. Close it, or use it in a ``with``. Threads may share it by HTTP only.

    One method a request.
    """

    def __init__(self, http: HttpTransport, topics: Transport | None = None) -> None:
        self._http = http
        self._way: Transport = topics or http
        self._topics = topics

    def create(self, sql: str, *, wait: float = WAIT_DEFAULT_S) -> Source:
        """Create a stream, a table or a view by a CREATE statement.

        Raises QueryError for a refused text, SourceConflict where the name is taken by another definition.
        """
        return self._way.create(sql, wait)

    def drop(self, name: str, *, cascade: bool = False, wait: float = WAIT_DEFAULT_S) -> Dropped:
        """Drop a stream, a table or a view that nothing reads.

        cascade: with the queries and views that read it, by HTTP, for the operator; returns which.
        """
        way: Transport = self._http if cascade else self._way
        return way.drop(name, cascade, wait)

    def heartbeat(self, source: str, ms: int, partition: int | None = None) -> Promised:
        """Promise that no row of a stream below ms (since 1970) follows in a partition; None: in any.

        Raises UnknownSource, TureenError: the stream does not take it; BrokerUnavailable: it has yet to read
        what was there before.
        """
        return self._http.run(calls.heartbeat(source, ms, partition))

    def register(
        self,
        sql: str | Select | None = None,
        handle: str | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        wait: float = WAIT_DEFAULT_S,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Query:
        """Register a standing query and wait until it stands.

        A text, or one that was built (:func:`tureen.stream`), or a template and its parameters: each
        placeholder means the constant that would be written in its place, a list for ``?`` and ``$1``, a
        mapping for ``:name``. Dates and datetimes may be given where a column holds them.

            client.register(template="SELECT * FROM flights WHERE carrier = ?", parameters=["AA"])

        handle: one of your own making (``tureen.new_handle()``), so that the same call made twice registers
        once; made here where it is None. wait: seconds; what does not stand then is PENDING, by topic alone 0
        returns at once, PUBLISHED. name: what it is called. Raises QueryError for a refused text, HandleInUse
        and NameInUse where another text or query has the handle or the name, KafkaUnavailable: it may or may
        not have taken effect; with the ``handle`` of the error it can be repeated.
        """
        publication = published(said_of(sql, template, parameters), handle, options, name)
        with unconfirmed(publication):
            query = self._register([publication], wait)[0]
            if query.state == "ERROR" and query.error is not None:
                raise query.error
        return query

    def register_many(
        self,
        statements: Iterable[Said | tuple[Said, str]],
        *,
        wait: float = 4 * WAIT_DEFAULT_S,
        options: Mapping[str, Any] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Query]:
        """Register many at once; the answers are in the same order.

        statements: each a text, a built one or a :class:`Template`, or one of them with its handle:
        ``("SELECT ...", handle)``. options: of all of them. progress: called with the number of those whose
        state is known, now and then. A refused one does not keep the others back: its ``error`` is set and
        its state is ``ERROR``.
        """
        publications = published_many(statements, options)
        return self._register(publications, wait, progress) if publications else []

    def _register(
        self, publications: list[Publication], wait: float, progress: Callable[[int], None] | None = None
    ) -> list[Query]:
        statuses = self._way.register(publications, wait, progress)
        return [
            Query(self, one.handle, sql=one.sql, state=status.state, error=status.error, facts=status.facts)
            for one, status in zip(publications, statuses, strict=True)
        ]

    def ask(
        self,
        sql: str | Select | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        at: At = None,
        archive: bool | None = None,
        wait: float = WAIT_DEFAULT_S,
    ) -> Snapshot:
        """The answer of a SELECT, once: it stands no longer than that takes.

        Arguments as those of :meth:`register` and :meth:`snapshot`; raises what they raise, and UnknownSource
        where the stream does not exist. A text that ends with FOR SYSTEM_TIME FROM a TO b asks for that
        period.
        """
        said, period = period_said(said_of(sql, template, parameters))
        publication = published(said, new_handle(), ONCE)
        try:
            (query,) = self._register([publication], wait)
            if query.error is not None:
                raise query.error
            return query.snapshot(at if period is None else period, archive=archive)
        finally:
            with contextlib.suppress(UnknownQuery):
                self.unregister(publication.handle)

    def query(self, handle: str) -> Query:
        """The query of a handle; nothing is asked, so it may not exist."""
        return Query(self, handle)

    def status(self, handle: str) -> QueryStatus:
        """How a query stands. Raises UnknownQuery."""
        return self._way.status(handle)

    def snapshot(self, handle: str, at: At = None, *, archive: bool | None = None) -> Snapshot:
        """The answer of a query.

        at: an earlier instant, as ms since 1970, a date, a datetime or ISO 8601, in UTC where it names no
        time zone: the answer of then, over the rows as known now; or a :class:`tureen.Period`, which says
        what comes then. archive: True completes an answer whose windows reach back further than what is
        retained by rows of the broker's archive; False never goes there. By default only ``at`` does, where
        it lies too far back for what is retained. Such an answer takes as long as reading them does.

        Raises UnknownQuery, InstantRefused, InstantOutOfRange, LimitExceeded, HistoryUnavailable.
        """
        return Snapshot.of(self.fetch(handle, "arrow", at, archive=archive))

    def difference(
        self,
        handle: str,
        since: Instant,
        until: Instant | None = None,
        *,
        archive: bool | None = None,
        limit: int = DIFFERENCE_DEFAULT,
    ) -> dict[str, Any]:
        """Which rows of an answer came and went between two instants, as bags, by HTTP.

        since, until: instants as of :meth:`snapshot`; until None: NOW. archive: as of :meth:`snapshot`.
        limit: of ``added`` and of ``removed``, so many rows at most, in JSON's types; ``added_total`` and
        ``removed_total`` count all. Raises what :meth:`snapshot` raises of either instant.
        """
        until_ms = None if until is None else instant_ms(until)
        return self._http.run(calls.difference(handle, instant_ms(since), until_ms, archive, limit))

    def fetch(
        self, handle: str, form: SnapshotFormat, at: At = None, *, archive: bool | None = None
    ) -> Reply:
        """The answer as bytes in a format, as the broker wrote them. Raises as :meth:`snapshot`."""
        return self._way.snapshot(handle, form, asked_at(at), archive)

    def changes(self, handle: str, since: str | None = None, **options: Unpack[Options]) -> ChangeFeed:
        """The answer of a query, then its changes as they come, by HTTP; or those behind a position.

        since: a position that an event or a snapshot told (``event.position``, ``snapshot.change_position``).
        options: those of :class:`tureen.changes_feed.Options`. Nothing is asked before the first event is
        wanted. Connections that break are made again, and no change is lost or told twice by that. Iterating
        raises UnknownQuery, PositionRefused, LimitExceeded (open feeds), MustRefetch (``refetch=False``), and
        BrokerUnavailable when the broker is away for longer than the patience.
        """
        return ChangeFeed(self._http.connections, self._http.url, handle, wishes_of(since, options))

    def alter(
        self,
        handle: str,
        sql: str | Select | None = None,
        *,
        template: str | Select | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        wait: float = WAIT_DEFAULT_S,
    ) -> QueryStatus:
        """Give a query another text while it runs; its options stay.

        Feeds go on with the difference of both answers where the new text gives the same columns, else they
        end with MustRefetch: ``changes`` in the facts of what is returned says which. Arguments as those of
        :meth:`register`. A refused text leaves the query as it was. Raises UnknownQuery, and what refuses the
        text, as QueryError.
        """
        return self._way.alter(published(said_of(sql, template, parameters), handle, None), wait)

    def unregister(self, handle: str) -> None:
        """End a query, by its handle or, for the operator, its public id.

        Raises UnknownQuery; by topic alone an unknown handle goes unnoticed.
        """
        self._way.unregister(handle)

    def unregister_many(self, handles: Iterable[str]) -> EndedQueries:
        """End queries by their handles or, for the operator, their public ids, in one call by HTTP.

        The result names those that are no query's.
        """
        return self._http.run(calls.unregister_many(list(handles)))

    def unregister_all_of(self, source: str) -> EndedQueries:
        """End all queries that read a stream, a table or a view, directly or through views, by HTTP.

        For the operator. Raises UnknownSource.
        """
        return self._http.run(calls.unregister_all_of(source))

    def change(self, handle: str, **options: Unpack[ChangedOptions]) -> QueryStatus:
        """Change options of a query while it runs, by HTTP; what is None stays. Returns how it stands then.

        Raises UnknownQuery, OptionRefused.
        """
        return self._http.run(calls.change(handle, **options))

    def execute(self, sql: str, *, wait: float = WAIT_DEFAULT_S) -> Listing:
        """Run a statement that is no SELECT, by HTTP: SHOW, DESCRIBE, EXPLAIN, PAUSE, CREATE and so on.

        Raises QueryError for a refused text, and whatever the thing it does raises.
        """
        return self._http.run(executed(sql, wait))

    def plan(self, handle: str, *, analyze: bool = False) -> Mapping[str, Any]:
        """How the answer of a query comes about, by HTTP. Raises UnknownQuery."""
        return self._http.run(calls.plan(handle, analyze))

    def proposals(self, handle: str) -> list[dict[str, Any]]:
        """Other texts for a query that use fewer resources, each with what it saves and costs, by HTTP:
        ``alter`` the query to approve one. Raises UnknownQuery.
        """
        return self._http.run(calls.proposals(handle))

    def plan_file(self, handle: str) -> dict[str, Any]:
        """The plan of a query as a file has it, by its handle or id, by HTTP. Raises UnknownQuery."""
        return self._http.run(calls.plan_file(handle))

    def validate_plan(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Check a plan, by HTTP: its text (``sql``), its columns, and the plan as it is exported.

        Raises PlanRefused.
        """
        return self._http.run(calls.validate_plan(plan))

    def apply_plan(self, handle: str, plan: Mapping[str, Any]) -> QueryStatus:
        """Run a query as a plan says: options, and attributes of what it shares, by HTTP; no answer changes.

        Raises UnknownQuery, PlanRefused, PlanIsAnother, OptionRefused.
        """
        return self._http.run(calls.apply_plan(handle, plan))

    def register_plan(
        self, plan: Mapping[str, Any], handle: str | None = None, *, wait: float = WAIT_DEFAULT_S
    ) -> Query:
        """Register a plan, by HTTP. Raises PlanRefused, and as :meth:`register`."""
        own = Handle(handle or new_handle())
        status = self._http.run(calls.register_plan(own, plan, wait))
        return Query(
            self, own, sql=status.sql or "", state=status.state, error=status.error, facts=status.facts
        )

    def entities(self, *, kind: str | None = None, query: str | None = None) -> list[dict[str, Any]]:
        """Every part of the running plans with what it uses, by HTTP. kind: only those of a kind; query: only
        those that a query shares, by its handle or id. Raises UnknownQuery.
        """
        return self._http.run(calls.entities(kind, query))

    def entity(self, id_: str) -> Mapping[str, Any]:
        """One of them with all its attributes, by HTTP. Raises UnknownEntity."""
        return self._http.run(calls.entity(id_))

    def set_entity(
        self, id_: str, values: Mapping[str, Any], *, if_version: int | None = None
    ) -> Mapping[str, Any]:
        """Set attributes of one, all or none, by HTTP; the entity as it is then. if_version: refuse where it
        was changed since.

        Raises UnknownEntity, AttributeRefused, EditConflict, NotAllowed; of a query OptionRefused and
        HandleNeeded.
        """
        return self._http.run(calls.set_entity(id_, values, if_version))

    def match(
        self,
        source: str,
        records: Record | Iterable[Record],
        *,
        limit: int = MATCHES_DEFAULT,
    ) -> list[Matches]:
        """Which standing queries each record satisfies, as if it came on the stream now; by HTTP.

        records: a JSON object or several, as such or as text. limit: ids told for each of them; the total is
        always told.
        Queries over several sources are not asked. Raises UnknownSource.
        """
        return self._http.run(calls.match(source, records, limit))

    def trace(self, source: str, partition: int, offset: int, *, limit: int = 20) -> Mapping[str, Any]:
        """The way of one record from its offset to the answers, as far as the broker knows it; by HTTP, and
        the operator's alone. limit: ids of queries.

        Raises NotAllowed, UnknownSource, and TureenError where the topic has no such partition.
        """
        return self._http.run(calls.trace(source, partition, offset, limit))

    def queries(self) -> list[QueryStatus]:
        """All standing queries, by public id; by topic alone also those that nothing has told of yet."""
        return self._way.queries()

    def sources(self) -> list[Source]:
        """All streams, tables and views."""
        return self._http.run(calls.sources())

    def infer(
        self, topic: str | None = None, name: str | None = None, *, sql: str | None = None
    ) -> dict[str, Any]:
        """A CREATE that reads a topic, guessed from its newest records, as ``sql`` (None: nothing tells one),
        and ``warnings``; for the operator. name: of the source. sql: a CREATE ... FROM TOPIC in their place.
        Raises TopicMissing, KafkaUnavailable, QueryError, NotAllowed.
        """
        return self._http.run(calls.infer(topic, name, sql))

    def summaries(self) -> list[dict[str, Any]]:
        """All summaries of streams: their definitions, their state, and how much they hold."""
        return self._http.run(calls.summaries())

    def summary(self, name: str) -> dict[str, Any]:
        """One summary: its granularities and zones, why each zone ended, how far its estimates may err.

        Raises UnknownSummary.
        """
        return self._http.run(calls.summary(name))

    def retry(self) -> list[int]:
        """Have shards that the broker holds try to come back; their numbers."""
        return self._http.run(calls.retry())

    def service(self) -> Mapping[str, Any]:
        """The broker's own figures, as ``GET /status`` gives them."""
        return self._http.run(calls.service())

    def close(self) -> None:
        self._http.close()
        if self._topics is not None:
            self._topics.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def broker_url(url: str | None) -> str:
    """The address that was given, else the environment's, else a broker on this machine."""
    return url or os.environ.get("TUREEN_URL") or URL_DEFAULT


def connect(
    url: str | None = None,
    kafka: Mapping[str, Any] | None = None,
    service_id: str = "tureen",
    token: str | None = None,
    *,
    timeout: float = TIMEOUT_DEFAULT_S,
) -> Client:
    """A client of the broker at ``url``; nothing is sent before the first call.

    url: by default the environment's TUREEN_URL, else a broker on this machine.
    kafka: plain Kafka settings (``{"bootstrap.servers": ...}``), passed through untouched; with them
    queries and snapshots go through topics alone. service_id: the prefix of the broker's topics.
    token: sent as a bearer token. timeout: seconds for one HTTP call, or one snapshot by topic.

    >>> client = connect("http://127.0.0.1:1")
    >>> client.queries()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tureen.errors.BrokerUnavailable: no broker answers at http://127.0.0.1:1: ...
    hint: start `tureen serve` and wait for its Ready, or give the address with --url or TUREEN_URL
    >>> client.close()
    """
    http = HttpTransport(broker_url(url), token, timeout)
    if kafka is None:
        return Client(http)
    from tureen.topic_client import TopicTransport

    return Client(http, TopicTransport(dict(kafka), service_id, timeout))
