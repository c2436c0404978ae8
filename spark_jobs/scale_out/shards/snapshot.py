"""An engine's whole state as entries of one file, and back.

Taken with :meth:`engine.engine.Engine.copy`, given to :meth:`engine.engine.Engine.restore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.persistence import HeldState, QueryState, SourceState
from engine.model.source import Derived, SourceName
from engine.model.state_tree import Tree
from engine.model.step import Position
from spark_jobs.errors import CheckpointUnreadable
from spark_jobs.scale_out.shards.entries import BEGIN_ANEW, StoredEntry
from storage import row_codec, state_codec
from storage.held_codec import decode_held, encode_held
from storage.tree_codec import decode_tree, encode_tree
from tureen.errors import StoreError

SOURCE, ROWS, PENDING, DERIVED, QUERY, POSITION = "source", "rows", "pending", "derived", "query", "position"
HELD = "held"
PART = "part"


def entries_of(engine: Engine) -> list[StoredEntry]:
    """Everything. O(retained rows + queries)."""
    sink = _Sink()
    engine.copy(sink)
    return sink.entries


class _Sink:
    """Takes one copy."""

    def __init__(self) -> None:
        self.entries: list[StoredEntry] = []

    def put_source(self, state: SourceState) -> None:
        self.entries.append(StoredEntry(SOURCE, state.stream.name, 0, state_codec.encode_source(state)))

    def put_derived(self, derived: Derived) -> None:
        self.entries.append(StoredEntry(DERIVED, derived.name, 0, state_codec.encode_derived(derived)))

    def append_rows(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        self.entries.append(StoredEntry(ROWS, source, first_ordinal, row_codec.encode(rows)))

    def seal(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        self.append_rows(source, first_ordinal, rows)

    def put_pending(self, source: SourceName, piece: int, rows: Batch) -> None:
        self.entries.append(StoredEntry(PENDING, source, piece, row_codec.encode(rows)))

    def put_query(self, state: QueryState) -> None:
        self.entries.append(
            StoredEntry(QUERY, state.registration.query_id, 0, state_codec.encode_query(state))
        )

    def swap_query(self, state: QueryState) -> None:
        raise AssertionError("a copy has all queries as they stand")

    def put_held(self, state: HeldState) -> None:
        self.entries.append(StoredEntry(HELD, state.source, 0, encode_held(state)))

    def put_part(self, name: str, tree: Tree) -> None:
        self.entries.append(StoredEntry(PART, name, 0, encode_tree(tree)))

    def commit(self, position: Position) -> None:
        self.entries.append(StoredEntry(POSITION, "", 0, state_codec.encode_position(position, 0)))

    # A copy holds all there is: it takes nothing away.

    def drop_source(self, source: SourceName) -> None:
        raise AssertionError("a copy drops nothing")

    def drop_derived(self, name: SourceName) -> None:
        raise AssertionError("a copy drops nothing")

    def cut_rows(self, source: SourceName, below_ordinal: int) -> None:
        raise AssertionError("a copy drops nothing")

    def drop_rows(self, source: SourceName, below_ordinal: int) -> None:
        raise AssertionError("a copy drops nothing")

    def drop_pending(self, source: SourceName, piece: int) -> None:
        raise AssertionError("a copy drops nothing")

    def drop_query(self, query_id: str) -> None:
        raise AssertionError("a copy drops nothing")

    def drop_held(self, over: tuple[SourceName, ...], source: SourceName) -> None:
        raise AssertionError("a copy drops nothing")

    def drop_part(self, name: str) -> None:
        raise AssertionError("a copy drops nothing")


class Snapshot:
    """The state in a file, as the engine reads it. Raises CheckpointUnreadable."""

    def __init__(self, entries: Iterable[StoredEntry], named: str) -> None:
        """named: the file, for errors."""
        self._named = named
        self._entries: dict[str, list[StoredEntry]] = {}
        for entry in entries:
            self._entries.setdefault(entry.kind, []).append(entry)
        self._sources = {state.stream.name: state for state in self.sources()}

    def position(self) -> Position | None:
        for entry in self._of(POSITION):
            return state_codec.decode_position(entry.value, self._called(entry))[0]
        raise CheckpointUnreadable(self._named, "it has no position", hint=BEGIN_ANEW)

    def sources(self) -> Iterator[SourceState]:
        for entry in self._of(SOURCE):
            yield state_codec.decode_source(entry.value, self._called(entry))

    def derived(self) -> Iterator[Derived]:
        for entry in self._of(DERIVED):
            yield state_codec.decode_derived(entry.value, self._called(entry))

    def queries(self) -> Iterator[QueryState]:
        for entry in self._of(QUERY):
            yield state_codec.decode_query(entry.value, self._called(entry))

    def held(self) -> Iterator[HeldState]:
        schemas = {name: state.stream.stored_schema for name, state in self._sources.items()}
        for entry in self._of(HELD):
            state = decode_held(entry.value, schemas, self._called(entry))
            if state is not None:
                yield state

    def state_parts(self, prefix: str) -> Iterator[tuple[str, Tree]]:
        for entry in sorted(self._of(PART), key=lambda entry: entry.name):
            if entry.name.startswith(prefix):
                yield entry.name, decode_tree(entry.value, self._called(entry))

    def rows(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        return self._batches(ROWS, source)

    def pending(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        return self._batches(PENDING, source)

    def _batches(self, kind: str, source: SourceName) -> Iterator[tuple[int, Batch]]:
        schema = self._sources[source].stream.stored_schema
        for entry in sorted(self._of(kind), key=lambda entry: entry.number):
            if entry.name == source:
                yield entry.number, row_codec.decode(entry.value, schema, self._called(entry))

    def _of(self, kind: str) -> list[StoredEntry]:
        return self._entries.get(kind, [])

    def _called(self, entry: StoredEntry) -> str:
        return f"{self._named} ({entry.kind} {entry.name!r})"


def restored(entries: Iterable[StoredEntry], named: str, limits: Limits | None = None) -> Engine:
    """The engine of a file. Raises CheckpointUnreadable."""
    try:
        return Engine.restore(Snapshot(entries, named), limits)
    except StoreError as damaged:
        raise CheckpointUnreadable(named, damaged.message, hint=BEGIN_ANEW) from damaged
