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
reply topic of this client. Lists (``queries``, ``sources``), statements, changes, plans and matches always go
by HTTP.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any

from tureen.answers import Listing, Matches
from tureen.errors import TureenError
from tureen.facts import QueryStatus, Source
from tureen.http_client import HttpTransport
from tureen.protocol import Handle, QueryId, SnapshotFormat, new_handle, query_id
from tureen.snapshot import Reply, Snapshot, instant_ms
from tureen.transport import WAIT_DEFAULT_S, Parameter, Publication, Transport

URL_DEFAULT = "http://127.0.0.1:8080"
TIMEOUT_DEFAULT_S = 30.0
MATCHES_DEFAULT = 1_000


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

    def pause(self) -> QueryStatus:
        """Stop serving it, at no cost, until :meth:`resume`. Raises UnknownQuery."""
        return self._client.change(self.handle, paused=True)

    def resume(self) -> QueryStatus:
        """Serve it again, as if it had never been paused. Raises UnknownQuery."""
        return self._client.change(self.handle, paused=False)

    def set_maintenance(self, maintenance: str) -> QueryStatus:
        """How its answer is maintained: auto, none, lazy or eager. No answer changes.

        Raises UnknownQuery, OptionRefused.
        """
        return self._client.change(self.handle, maintenance=maintenance)

    def plan(self, *, analyze: bool = False) -> Mapping[str, Any]:
        """How its answer comes about; analyze: evaluate it once, and tell rows and times as they were.

        Raises UnknownQuery.
        """
        return self._client.plan(self.handle, analyze=analyze)

    def __repr__(self) -> str:
        return f"<Query {self.query_id} {self.state or ''}>".replace(" >", ">")


@dataclass(frozen=True, slots=True)
class Template:
    """A text with placeholders, and the parameters that fill them: one query of many that differ in those.

    >>> Template("SELECT * FROM flights WHERE carrier = ?", ["AA"])
    Template(sql='SELECT * FROM flights WHERE carrier = ?', parameters=['AA'])
    """

    sql: str
    parameters: Sequence[Parameter] | Mapping[str, Parameter]


def _published(said: str | Template, handle: str | None, options: Mapping[str, Any] | None) -> Publication:
    """A query on its way to the broker, under this handle or a new one."""
    own = Handle(handle or new_handle())
    if isinstance(said, str):
        return Publication(own, said, options or {})
    return Publication(own, said.sql, options or {}, said.parameters)


class Client:
    """A connection to one broker. Close it, or use it in a ``with``. Threads may share it by HTTP only."""

    def __init__(self, http: HttpTransport, topics: Transport | None = None) -> None:
        self._http = http
        self._way: Transport = topics or http
        self._topics = topics

    def create(self, sql: str, *, wait: float = WAIT_DEFAULT_S) -> Source:
        """Create a stream or a view by a CREATE statement.

        Raises QueryError for a refused text, SourceConflict where the name is taken by another definition.
        """
        return Source.of(self._way.create(sql, wait))

    def drop(self, name: str, *, wait: float = WAIT_DEFAULT_S) -> None:
        """Drop a stream or a view that nothing reads."""
        self._way.drop(name, wait)

    def register(
        self,
        sql: str | None = None,
        handle: str | None = None,
        *,
        template: str | None = None,
        parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None,
        wait: float = WAIT_DEFAULT_S,
        options: Mapping[str, Any] | None = None,
    ) -> Query:
        """Register a standing query and wait until it stands.

        A text, or a template and its parameters: each placeholder means the constant that would be written
        in its place, a list for ``?`` and ``$1``, a mapping for ``:name``. Dates and datetimes may be given
        where a column holds them.

            client.register(template="SELECT * FROM flights WHERE carrier = ?", parameters=["AA"])

        handle: one of your own making (``tureen.new_handle()``), so that the same call made twice registers
        once; made here where it is None. wait: seconds; what is not known then is PENDING. By topic alone 0
        publishes and returns at once, with the state PUBLISHED.
        Raises QueryError for a refused text, HandleInUse for a handle that stands with another one.
        """
        if (sql is None) == (template is None) or (parameters is not None and template is None):
            raise TypeError("register takes a text, or template= and parameters=")
        said = Template(template, parameters or ()) if template is not None else sql or ""
        query = self._register([_published(said, handle, options)], wait)[0]
        if query.state == "ERROR" and query.error is not None:
            raise query.error
        return query

    def register_many(
        self,
        statements: Iterable[str | Template | tuple[str | Template, str]],
        *,
        wait: float = 4 * WAIT_DEFAULT_S,
        options: Mapping[str, Any] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Query]:
        """Register many at once; the answers are in the same order.

        statements: each a text or a :class:`Template`, or one of both with its handle: ``("SELECT ...",
        handle)``. options: of all of them. progress: called with the number of those whose state is known,
        now and then. A refused one does not keep the others back: its ``error`` is set and its state is
        ``ERROR``.
        """
        publications = []
        for one in statements:
            said, handle = one if isinstance(one, tuple) else (one, None)
            publications.append(_published(said, handle, options))
        return self._register(publications, wait, progress) if publications else []

    def _register(
        self, publications: list[Publication], wait: float, progress: Callable[[int], None] | None = None
    ) -> list[Query]:
        statuses = self._way.register(publications, wait, progress)
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

    def change(
        self,
        handle: str,
        *,
        paused: bool | None = None,
        maintenance: str | None = None,
        weight: float | None = None,
    ) -> QueryStatus:
        """Change options of a query while it runs, by HTTP; what is None stays. Returns how it stands then.

        Raises UnknownQuery, OptionRefused.
        """
        given = {"paused": paused, "maintenance": maintenance, "weight": weight}
        return self._http.change(handle, {name: value for name, value in given.items() if value is not None})

    def execute(self, sql: str, *, wait: float = WAIT_DEFAULT_S) -> Listing:
        """Run a statement that is no SELECT, by HTTP: SHOW, DESCRIBE, EXPLAIN, PAUSE, CREATE and so on.

        Raises QueryError for a refused text, and whatever the thing it does raises.
        """
        return Listing.of(self._http.statement(sql, wait))

    def plan(self, handle: str, *, analyze: bool = False) -> Mapping[str, Any]:
        """How the answer of a query comes about, by HTTP. Raises UnknownQuery."""
        return self._http.plan(handle, analyze)

    def match(
        self,
        source: str,
        records: Iterable[Mapping[str, Any] | str | bytes],
        *,
        limit: int = MATCHES_DEFAULT,
    ) -> list[Matches]:
        """Which standing queries each record satisfies, as if it came on the stream now; by HTTP.

        records: JSON objects, as such or as text. limit: ids told for each of them; the total is always told.
        Raises UnknownSource.
        """
        lines = b"".join(_line(record) for record in records)
        return [Matches.of(one) for one in self._http.match(source, lines, limit)] if lines else []

    def queries(self) -> list[QueryStatus]:
        """All standing queries, by their public ids."""
        return [QueryStatus.of(one) for one in self._http.queries()]

    def sources(self) -> list[Source]:
        """All streams and views."""
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


def _line(record: Mapping[str, Any] | str | bytes) -> bytes:
    """A record on a line of its own; JSON has no bare line break within a value."""
    if isinstance(record, Mapping):
        return json.dumps(record).encode() + b"\n"
    data = record.encode() if isinstance(record, str) else record
    return b" ".join(data.splitlines()) + b"\n"


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
    hint: start one with `tureen serve`, or name its address by --url or TUREEN_URL
    >>> client.close()
    """
    http = HttpTransport(url or os.environ.get("TUREEN_URL") or URL_DEFAULT, token, timeout)
    if kafka is None:
        return Client(http)
    from tureen.topic_client import TopicTransport

    return Client(http, TopicTransport(dict(kafka), service_id, timeout))
