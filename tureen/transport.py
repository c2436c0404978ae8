"""What a client needs from its way to the broker: by HTTP, or by topics alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Protocol

from tureen.answers import Dropped
from tureen.facts import QueryStatus, Source
from tureen.period import Period
from tureen.protocol import Handle, SnapshotFormat
from tureen.snapshot import Reply

WAIT_DEFAULT_S = 30.0

Parameter = bool | int | float | str | date | datetime | None
"""The value of a placeholder. A datetime without a zone is taken to be UTC."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Publication:
    """A query on its way to the broker, under a handle that the client has made.

    parameters: of the placeholders in ``sql``, by place or by name; None: ``sql`` has none. name: what the
    query is called; None: it has its id alone.
    """

    handle: Handle
    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)
    parameters: Sequence[Parameter] | Mapping[str, Parameter] | None = None
    name: str | None = None

    def fields(self) -> dict[str, Any]:
        """What a record and a request say: a text, or a template with parameters, and options."""
        said: dict[str, Any] = {"sql": self.sql}
        if self.parameters is not None:
            given = self.parameters
            values: Any = [json_value(each) for each in given] if not isinstance(given, Mapping) else {}
            if isinstance(given, Mapping):
                values = {name: json_value(value) for name, value in given.items()}
            said = {"template": self.sql, "parameters": values}
        if self.options:
            said["options"] = dict(self.options)
        if self.name is not None:
            said["name"] = self.name
        return said


def json_value(value: Parameter) -> bool | int | float | str | None:
    """A parameter as JSON carries it: dates and datetimes as text, the latter in UTC.

    >>> json_value(datetime(2024, 1, 31, 12, tzinfo=UTC))
    '2024-01-31 12:00:00.000'
    >>> json_value(date(2024, 1, 31))
    '2024-01-31'
    """
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return moment.isoformat(sep=" ", timespec="milliseconds")
    return value.isoformat() if isinstance(value, date) else value


class Transport(Protocol):
    """Calls raise the TureenError that the broker answered with, or BrokerUnavailable, KafkaUnavailable."""

    def create(self, sql: str, wait_s: float) -> Source:
        """Create a stream, a table or a view."""

    def drop(self, name: str, cascade: bool, wait_s: float) -> Dropped:
        """Drop a stream, a table or a view."""

    def register(
        self, publications: Sequence[Publication], wait_s: float, progress: Progress | None = None
    ) -> list[QueryStatus]:
        """Register queries; one status each, in the same order, refusals as state ERROR.

        progress: told now and then of how many the state is known.
        """

    def status(self, handle: str) -> QueryStatus:
        """Raises UnknownQuery."""

    def queries(self) -> list[QueryStatus]:
        """All standing queries, by their public ids."""

    def alter(self, publication: Publication, wait_s: float) -> QueryStatus:
        """Give a query another text. Raises UnknownQuery, and what refuses the text."""

    def unregister(self, handle: str) -> None:
        """A handle, or a public id. Raises UnknownQuery where the way there can tell."""

    def snapshot(
        self, handle: str, form: SnapshotFormat, at: int | Period | None, archive: bool | None = None
    ) -> Reply:
        """Arguments as :meth:`tureen.Client.fetch`. Raises UnknownQuery, InstantOutOfRange, LimitExceeded."""

    def close(self) -> None:
        """Give sockets and topics back. Calls after this fail."""
