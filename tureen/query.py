"""What a registered query is to a client, whichever way its calls go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from tureen.errors import TureenError
from tureen.protocol import Handle, QueryId, query_id

Connected = TypeVar("Connected")


class Handled(Generic[Connected]):
    """A query and the client that knows its handle.

    state: as it was told at registration (``RUNNING``; ``PENDING`` while its stream is missing), None for a
    query that was only named by its handle. error: why it is ``PENDING``, or was refused (``register_many``).
    facts: all that was told then, such as ``output``, where EMIT CHANGES writes.
    """

    def __init__(
        self,
        client: Connected,
        handle: str,
        *,
        sql: str | None = None,
        state: str | None = None,
        error: TureenError | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client
        self.handle = Handle(handle)
        self.sql = sql
        self.state = state
        self.error = error
        self.facts: Mapping[str, Any] = facts or {}

    @property
    def query_id(self) -> QueryId:
        """The public id; lists and log lines show it."""
        return query_id(self.handle)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.query_id} {self.state or ''}>".replace(" >", ">")

    def _repr_html_(self) -> str:
        """For notebooks: what it is, without its handle."""
        from tureen.display import query_html

        return query_html(str(self.query_id), self.state, self.sql, self.error)
