"""The names of queries: which query has which.

A name belongs to one query at a time, from when its registration is accepted, by HTTP or from the topic,
until the query ends or gets another name. No name is the handle of a query: lists show names, and where a
handle is given it means the query that it opens. Written by the event loop alone. Every call is O(1).
"""

from __future__ import annotations

from collections.abc import Container, KeysView

from tureen.errors import NameInUse
from tureen.protocol import query_id as id_opened_by

_HANDLE_HINT = "a handle is a secret, which nobody may use as a name, and lists show names: choose another"


class QueryNames:
    """Names by the ids of their queries."""

    def __init__(self, queries: Container[str]) -> None:
        """queries: the ids of all of them."""
        self._queries = queries
        self._ids: dict[str, str] = {}
        self._named: dict[str, str] = {}
        """Names by the ids that they would open as handles."""

    def id_of(self, name: str) -> str | None:
        """The id of the query that has a name; None: none has."""
        return self._ids.get(name)

    def all(self) -> KeysView[str]:
        """Every name that a query has."""
        return self._ids.keys()

    def require(self, name: str | None, query_id: str) -> None:
        """Raise NameInUse where a query may not have this id and name. name: None where none is wanted."""
        if self._named.get(query_id, name) != name:
            raise NameInUse(
                "the handle is the name of another query", hint="leave the handle out and get one"
            )
        if name is None:
            return
        opened = id_opened_by(name)
        if opened == query_id or opened in self._queries:
            raise NameInUse("the name is the handle of a query", hint=_HANDLE_HINT)
        holder = self._ids.get(name)
        if holder is not None and holder != query_id:
            raise NameInUse(
                f"there is a query named {name!r} already: {holder}",
                hint=f"DROP QUERY {name} ends that one, ALTER QUERY {name} RENAME TO another renames it; or "
                "choose another name",
            )

    def take(self, name: str | None, query_id: str) -> None:
        """Give a query a name, where no other has it."""
        if name is not None and self._ids.setdefault(name, query_id) == query_id:
            self._named[id_opened_by(name)] = name

    def release(self, name: str | None, query_id: str) -> None:
        """A query has a name no more; of another's name nothing changes."""
        if name is not None and self._ids.get(name) == query_id:
            del self._ids[name]
            del self._named[id_opened_by(name)]

    def __len__(self) -> int:
        return len(self._ids)
