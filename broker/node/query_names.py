"""The names of queries: which query has which.

A name belongs to one query at a time, from when its registration is accepted, by HTTP or from the topic,
until the query ends or gets another name. Written by the event loop alone. Every call is O(1).
"""

from __future__ import annotations

from tureen.errors import NameInUse


class QueryNames:
    """Names by the ids of their queries."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def id_of(self, name: str) -> str | None:
        """The id of the query that has a name; None: none has."""
        return self._ids.get(name)

    def require(self, name: str | None, query_id: str) -> None:
        """Raise NameInUse where another query has the name. name: None where none is wanted."""
        holder = None if name is None else self._ids.get(name)
        if name is not None and holder is not None and holder != query_id:
            raise NameInUse(
                f"there is a query named {name!r} already: {holder}",
                hint=f"DROP QUERY {name} ends that one, ALTER QUERY {name} RENAME TO another renames it; or "
                "choose another name",
            )

    def take(self, name: str | None, query_id: str) -> None:
        """Give a query a name, where no other has it."""
        if name is not None:
            self._ids.setdefault(name, query_id)

    def release(self, name: str | None, query_id: str) -> None:
        """A query has a name no more; of another's name nothing changes."""
        if name is not None and self._ids.get(name) == query_id:
            del self._ids[name]

    def __len__(self) -> int:
        return len(self._ids)
