"""The entries of all queries by their ids, with counts, and which of them changed, for one who watches.

What a status page asks for each second is counted as entries come, change and go, so that nobody goes through
all of them for it. Of an entry that is in here state, shard, sources and uses are changed by
:meth:`QueryTable.ended` alone, or by putting another entry in its place; whoever changes anything else in
place says it (``note``).

Written by the event loop alone. A change costs O(what the query reads), a count O(1).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, KeysView, MutableMapping, ValuesView
from typing import Any

from broker.base.entries import QueryEntry
from broker.base.internal import State
from broker.node.query_names import QueryNames
from tureen.errors import SourceConflict

STATES: tuple[State, ...] = ("RUNNING", "PAUSED", "PENDING", "ERROR")
"""States of registered queries."""


class QueryTable(MutableMapping[str, QueryEntry]):
    """by_state: how many there are of each state. by_shard: how many stand on each shard. readers: how many
    that stand, or are worked out before they do, read a source or a view. names: of those that have one;
    of several with one name the first.
    """

    def __init__(self) -> None:
        self._entries: dict[str, QueryEntry] = {}
        self.by_state: Counter[State] = Counter()
        self.by_shard: Counter[int] = Counter()
        self.readers: Counter[str] = Counter()
        self.names = QueryNames(self._entries)
        self._leaving: Counter[str] = Counter()
        """Sources that are being dropped with all that reads them."""
        self._changed: set[str] | None = None
        """What was noted; None: nobody watches."""

    def states(self) -> dict[str, int]:
        """How many queries there are, by state, of every state."""
        return {state: self.by_state[state] for state in STATES}

    @property
    def standing(self) -> int:
        """How many stand. O(shards)."""
        return self.by_shard.total()

    def ended(self, name: str, state: State, error: dict[str, Any] | None) -> None:
        """A query does not stand any more, and why."""
        entry = self._entries[name]
        self._count(entry, -1)
        entry.state, entry.error, entry.shard = state, error, None
        self._count(entry, 1)
        self.note(name)

    @contextlib.contextmanager
    def leaving(self, name: str) -> Iterator[None]:
        """A source is being dropped with all that reads it: no query over it is registered meanwhile."""
        self._leaving[name] += 1
        try:
            yield
        finally:
            self._leaving -= Counter([name])

    def refuse_leaving(self, sources: Iterable[str]) -> None:
        """Raise SourceConflict where one of these is being dropped with all that reads it. Any thread."""
        for name in sources:
            if name in self._leaving:
                raise SourceConflict(
                    f"{name!r} is being dropped with all that reads it", hint="try again once it is gone"
                )

    # --- watching ---------------------------------------------------------------------------------

    def note(self, name: str) -> None:
        """The entry has come, changed or gone."""
        if self._changed is not None:
            self._changed.add(name)

    def changes(self) -> set[str] | None:
        """Names noted since the last call; None: it is not known, since nobody watched. From now on they
        are noted.
        """
        found, self._changed = self._changed, set()
        return found

    @property
    def has_changes(self) -> bool:
        """Whether names were noted since, or may have changed while nobody watched."""
        return self._changed is None or bool(self._changed)

    def unwatch(self) -> None:
        """Nobody asks any more."""
        self._changed = None

    # --- the mapping ------------------------------------------------------------------------------

    def _count(self, entry: QueryEntry, by: int) -> None:
        self.by_state[entry.state] += by
        if entry.shard is not None:
            _add(self.by_shard, entry.shard, by)
        if entry.holds_sources:
            for name in {*entry.sources, *entry.uses}:
                _add(self.readers, name, by)

    def __getitem__(self, name: str) -> QueryEntry:
        return self._entries[name]

    def __setitem__(self, name: str, entry: QueryEntry) -> None:
        before = self._entries.get(name)
        if before is not None:
            self._count(before, -1)
            if before.query_name != entry.query_name:
                self.names.release(before.query_name, name)
        self.names.take(entry.query_name, name)
        self._entries[name] = entry
        self._count(entry, 1)
        self.note(name)

    def __delitem__(self, name: str) -> None:
        entry = self._entries.pop(name)
        self.names.release(entry.query_name, name)
        self._count(entry, -1)
        self.note(name)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def keys(self) -> KeysView[str]:
        """Those of the dictionary itself, as the next two: copies of them are made at its speed."""
        return self._entries.keys()

    def values(self) -> ValuesView[QueryEntry]:
        return self._entries.values()

    def items(self) -> ItemsView[str, QueryEntry]:
        return self._entries.items()

    def _check(self) -> None:
        again = QueryTable()
        again.update(self._entries)
        assert +self.by_state == +again.by_state
        assert self.by_shard == again.by_shard
        assert self.readers == again.readers
        for name in {entry.query_name for entry in self._entries.values()} - {None}:
            holder = self.names.id_of(str(name))
            assert holder not in self._entries or self._entries[holder].query_name == name
        assert self.standing == sum(entry.shard is not None for entry in self._entries.values())


def _add(counts: Counter[Any], key: Any, by: int) -> None:
    """What counts nothing is not kept: names come and go for ever."""
    counts[key] += by
    if not counts[key]:
        del counts[key]
