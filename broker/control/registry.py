"""The registry: what ``.queries`` says stands, and what became of it.

A Faust table on rocksdict with a compacted changelog, partitioned as ``.queries``. An entry is

    {"sql": text | None, "parameters": [...] | {...} | None, "options": {...},
     "state": state | None, "error": {...} | None, "approximation": [...]}

or, of a stream or a view, ``{"sql": text, "pending": whether what it reads is missing}``. ``sql`` None: a
registration that is none and has no text; ``state`` None: its outcome is not known yet. An entry is written
before its command is handed to the worker, so that a command cut off by a crash is said again at the next
start, when everything is.

Faust lets a table be written only while it iterates a record of the source topic's partition. Outcomes come
later, so :meth:`Registry.at` stands in for that record.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from faust import streams

from broker.control.writer import WrittenTable
from topics.control_records import Command, MalformedRecord
from topics.json_object import TOO_DEEP, is_too_deep

Entry = dict[str, Any]


@dataclass(slots=True)
class _Message:
    topic: str
    partition: int


class _Place:
    """As much of an event as tables look at."""

    def __init__(self, topic: str, partition: int) -> None:
        self.message = _Message(topic, partition)


class Registry:
    """A table by name, and in which partition each name lives.

    Reads and writes cost one RocksDB access each; the places take about 100 bytes a name in memory.
    """

    def __init__(self, table: WrittenTable, topic: str) -> None:
        self._table = table
        self._topic = topic
        self._places: dict[str, int] = {}

    @contextlib.contextmanager
    def at(self, partition: int) -> Iterator[None]:
        """Within, the table may be written as if a record of this partition were being handled."""
        place = _Place(self._topic, partition)
        token = streams._current_event.set(weakref.ref(place))  # type: ignore[arg-type]
        try:
            yield
        finally:
            streams._current_event.reset(token)

    def load(self) -> None:
        """Learn the places of all entries; once after recovery."""
        store = self._table.store
        self._places = {}
        for partition, database in list(store._dbs.items()):
            for key in store._visible_keys(database):
                self._places[key.decode()] = partition

    def names(self) -> list[str]:
        return list(self._places)

    def entries(self, names: Collection[str] | None = None) -> Iterator[tuple[str, Entry]]:
        """Entries with their names; of all there are where none are given, which are then read in one pass:
        a few microseconds each. What is written meanwhile may be read or not.
        """
        if names is not None:
            for name in names:
                entry = self.get(name)
                if entry is not None:
                    yield name, entry
            return
        store = self._table.store
        for partition, database in list(store._dbs.items()):
            for key, data in store._visible_items(database):
                name = key.decode()
                if self._places.get(name) == partition:
                    yield name, orjson.loads(data)

    def get(self, name: str) -> Entry | None:
        partition = self._places.get(name)
        if partition is None:
            return None
        with self.at(partition):
            data = self._table.get(name.encode())
        entry: Entry | None = None if data is None else orjson.loads(data)
        return entry

    def put(self, name: str, entry: Entry, partition: int | None = None) -> None:
        """Write an entry; without a partition where the name lives already. KeyError if nowhere."""
        if partition is None:
            partition = self._places[name]
        with self.at(partition):
            self._table[name.encode()] = orjson.dumps(entry)
        self._places[name] = partition

    @property
    def changelog(self) -> str:
        """The topic of the table's changes."""
        return self._table.changelog

    def settle(self, ends: Mapping[int, int]) -> None:
        """What stood in the changelog before these offsets is in the store."""
        self._table.settle(ends)

    def remove(self, name: str) -> None:
        partition = self._places.pop(name, None)
        if partition is not None:
            with self.at(partition):
                self._table.pop(name.encode(), None)


def said_again(name: str, entry: Entry) -> Command:
    """What the registry holds of a query, as a command without an origin. An entry that is nested deeper than
    a record may be, as an earlier version took it, is refused from now on.
    """
    if is_too_deep({"options": entry["options"], "parameters": entry.get("parameters")}):
        entry |= {"options": {}, "parameters": None}
        entry["refused"] = MalformedRecord(f"the value {TOO_DEEP}").as_dict()
    command: Command = {"kind": "register", "name": name}
    if entry["refused"] is not None:
        command |= {"kind": "refuse", "error": entry["refused"]}
    if entry["sql"] is not None:
        command |= {"sql": entry["sql"], "options": entry["options"]}
    if entry.get("parameters") is not None:
        command["parameters"] = entry["parameters"]
    return command
