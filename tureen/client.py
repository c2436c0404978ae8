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
reply topic of this client. Lists (``queries``, ``sources``) are always asked for by HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any

from tureen.errors import TureenError
from tureen.facts import QueryStatus, Source
from tureen.http_client import HttpTransport
from tureen.protocol import Handle, QueryId, SnapshotFormat, new_handle, query_id
from tureen.snapshot import Reply, Snapshot, instant_ms
from tureen.transport import WAIT_DEFAULT_S, Publication, Transport

URL_DEFAULT = "http://127.0.0.1:8080"
TIMEOUT_DEFAULT_S = 30.0


class Query:
    """A registered query, by its handle. Costs nothing to make: nothing is asked before a method is called.

    state: as it was told at registration (``RUNNING``; ``PENDING`` while its stream is missing), None for a
    query that was only named by its handle. error: why it is ``PENDING``, or was refused (``register_many``).
    """

    def __init__(
        self,
        client: Client,
        handle: str,
        *,
        sql: str | None = None,
        state: str | None = None,
        error: TureenError | None = None,
    ) -> None:
        self._client = client
        self.handle = Handle(handle)
        self.sql = sql
        self.state = state
        self.error = error

    @property
    def query_id(self) -> QueryId:
        """The public id; lists and log lines show it."""
        return query_id(self.handle)

    def status(self) -> QueryStatus:
        """How it stands now. Raises UnknownQuery."""
        return self._client.status(self.handle)

    def snapshot(self, at: int | datetime | None = None) -> Snapshot:
        """Its answer now, or as of an earlier instant. Raises UnknownQuery, InstantOutOfRange."""
        return self._client.snapshot(self.handle, at=at)

    def unregister(self) -> None:
        """End it; the handle opens nothing any more. Raises UnknownQuery."""
        self._client.unregister(self.handle)

    def __repr__(self) -> str:
        return f"<Query {self.query_id} {self.state or ''}>".replace(" >", ">")


class Client:
    """A connection to one broker. Close it, or use it in a ``with``. Threads may share it by HTTP only."""

    def __init__(self, http: HttpTransport, topics: Transport | None = None) -> None:
        self._http = http
        self._way: Transport = topics or http
        self._topics = topics

    def create(self, sql: str, *, wait: float = WAIT_DEFAULT_S) -> Source:
        """Create a stream by a CREATE STREAM statement.

        Raises QueryError for a refused text, SourceConflict where the name is taken by another definition.
        """
        return Source.of(self._way.create(sql, wait))

    def drop(self, name: str, *, wait: float = WAIT_DEFAULT_S) -> None:
        """Drop a stream that no query reads."""
        self._way.drop(name, wait)

    def register(
        self,
        sql: str,
        handle: str | None = None,
        *,
        wait: float = WAIT_DEFAULT_S,
        options: Mapping[str, Any] | None = None,
    ) -> Query:
        """Register a standing query and wait until it stands.

        handle: one of your own making (``tureen.new_handle()``), so that the same call made twice registers
        once; made here where it is None. wait: seconds; what is not known then is PENDING. By topic alone 0
        publishes and returns at once, with the state PUBLISHED.
        Raises QueryError for a refused text, HandleInUse for a handle that stands with another one.
        """
        query = self._register([Publication(Handle(handle or new_handle()), sql, options or {})], wait)[0]
        if query.state == "ERROR" and query.error is not None:
            raise query.error
        return query

    def register_many(
        self, statements: Iterable[str | tuple[str, str]], *, wait: float = 4 * WAIT_DEFAULT_S
    ) -> list[Query]:
        """Register many at once, each a text or (text, handle); the answers are in the same order.

        A refused one does not keep the others back: its ``error`` is set and its state is ``ERROR``.
        """
        publications = [
            Publication(new_handle(), one) if isinstance(one, str) else Publication(Handle(one[1]), one[0])
            for one in statements
        ]
        return self._register(publications, wait) if publications else []

    def _register(self, publications: list[Publication], wait: float) -> list[Query]:
        statuses = self._way.register(publications, wait)
        return [
            Query(self, one.handle, sql=one.sql, state=status.state, error=status.error)
            for one, status in zip(publications, statuses, strict=True)
        ]

    def query(self, handle: str) -> Query:
        """The query of a handle; nothing is asked, so it may not exist."""
        return Query(self, handle)

    def status(self, handle: str) -> QueryStatus:
        """How a query stands. Raises UnknownQuery."""
        return self._way.status(handle)

    def snapshot(self, handle: str, at: int | datetime | None = None) -> Snapshot:
        """The answer of a query.

        at: an earlier instant, ms since 1970 or a datetime with a time zone: the answer of then, over the
        rows as known now. Raises UnknownQuery, InstantOutOfRange, LimitExceeded.
        """
        return Snapshot.of(self.fetch(handle, "arrow", at))

    def fetch(self, handle: str, form: SnapshotFormat, at: int | datetime | None = None) -> Reply:
        """The answer as bytes in a format, as the broker wrote them. Raises as :meth:`snapshot`."""
        return self._way.snapshot(handle, form, None if at is None else instant_ms(at))

    def unregister(self, handle: str) -> None:
        """End a query. Raises UnknownQuery; by topic alone an unknown handle goes unnoticed."""
        self._way.unregister(handle)

    def queries(self) -> list[QueryStatus]:
        """All standing queries, by their public ids."""
        return [QueryStatus.of(one) for one in self._http.queries()]

    def sources(self) -> list[Source]:
        """All streams."""
        return [Source.of(one) for one in self._http.sources()]

    def service(self) -> Mapping[str, Any]:
        """The broker's own figures, as ``GET /status`` gives them."""
        return self._http.service()

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


def connect(
    url: str = URL_DEFAULT,
    kafka: Mapping[str, Any] | None = None,
    service_id: str = "tureen",
    token: str | None = None,
    *,
    timeout: float = TIMEOUT_DEFAULT_S,
) -> Client:
    """A client of the broker at ``url``; nothing is sent before the first call.

    kafka: plain Kafka settings (``{"bootstrap.servers": ...}``), passed through untouched; with them
    queries and snapshots go through topics alone. service_id: the prefix of the broker's topics.
    token: sent as a bearer token. timeout: seconds for one HTTP call, or one snapshot by topic.

    >>> client = connect("http://127.0.0.1:1")
    >>> client.queries()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tureen.errors.BrokerUnavailable: no broker answers at http://127.0.0.1:1: ...
    hint: start one with `tureen serve`, or name its address by --url or TUREEN_URL
    >>> client.close()
    """
    http = HttpTransport(url, token, timeout)
    if kafka is None:
        return Client(http)
    from tureen.topic_client import TopicTransport

    return Client(http, TopicTransport(dict(kafka), service_id, timeout))
