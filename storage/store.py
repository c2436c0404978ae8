"""The state of one shard in one directory: :class:`engine.model.persistence.StateSink` and ``StateSource``.

Promises:
- ``commit`` is one write of RocksDB: everything put since the last commit is durable with the position, or
  nothing is. A process killed anywhere leaves exactly one committed position with its rows. Files that are
  cut, changed or gone leave an earlier one, or are refused (:class:`tureen.errors.StoreCorrupt`).
- Reads see the last commit alone, never what is being put.
- When a commit fails (:class:`tureen.errors.StoreFull`) the store is as it was and what was put is forgotten;
  the engine puts it again, and once the cause is gone that commit goes through, without a restart.
- One owner per directory, from construction to :meth:`Store.close`. One thread at a time.

Cost: a put is O(1), the rows put must not change before the commit; a commit is O(bytes) and one flush of
the log to the device. Reads decode one piece at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.model.batch import Batch
from engine.model.persistence import HeldState, QueryState, SourceState
from engine.model.source import Derived, Schema, SourceName
from engine.model.state_tree import Tree
from engine.model.step import Position
from storage import row_codec, state_codec
from storage.database import Changes, Database, StoreOptions
from storage.frames import corrupt
from storage.held_codec import decode_held
from storage.keys import (
    FORMAT_KEY,
    HELD_PREFIX,
    META,
    PART_PREFIX,
    POSITION_KEY,
    POSITIONS,
    QUERIES,
    SEGMENTS,
    SOURCES,
    SWAPPED,
    VIEW_PREFIX,
    RowKind,
    key_number,
    name_key,
    part_key,
    rows_range,
)
from storage.links import Links
from storage.owner import Owner
from storage.save import Save
from storage.tree_codec import decode_tree
from tureen.errors import StoreError


# One method for each kind of state that an engine puts, drops and reads: the interfaces of its persistence.
class Store:
    """A directory's state.

    Raises, at construction: StoreInUse, StoreFull, StoreVersionUnknown, StoreCorrupt. A read or a commit
    after a failed one raises StoreFull as long as the database cannot be opened again.
    """

    def __init__(self, directory: Path, options: StoreOptions | None = None) -> None:
        self.directory = directory
        self._options = options or StoreOptions()
        self._staged: list[Callable[[Save], None]] = []
        self._floors: dict[SourceName, int] = {}
        self._doubtful: set[bytes] = set()
        self._position: Position | None = None
        self._saves = 0
        self._database: Database | None = None
        self._links: Links | None = None
        self._owner = Owner(directory)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the directory back. What was put and not committed is forgotten. Harmless when done twice."""
        self._staged.clear()
        self._close_database()
        self._owner.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what the engine puts -----------------------------------------------------------------------

    def put_source(self, state: SourceState) -> None:
        """Create or replace, without its rows."""
        self._staged.append(lambda save: save.put_source(state))

    def drop_source(self, source: SourceName) -> None:
        """The source and all its rows."""
        self._staged.append(lambda save: save.drop_source(source))

    def put_derived(self, derived: Derived) -> None:
        """A view or a derived stream: create or replace."""
        self._staged.append(lambda save: save.put_derived(derived))

    def drop_derived(self, name: SourceName) -> None:
        """Harmless where there is none."""
        self._staged.append(lambda save: save.drop_derived(name))

    def append_rows(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        """The next rows that are visible, as a piece."""
        self._staged.append(lambda save: save.put_rows(source, first_ordinal, rows, seal=False))

    def seal(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        """A segment in place of the pieces of exactly these ordinals."""
        self._staged.append(lambda save: save.put_rows(source, first_ordinal, rows, seal=True))

    def cut_rows(self, source: SourceName, below_ordinal: int) -> None:
        """Delete the pieces and segments that begin below."""
        self._staged.append(lambda save: save.cut_rows(source, below_ordinal))

    def drop_rows(self, source: SourceName, below_ordinal: int) -> None:
        """Delete the pieces and segments whose rows are all below."""
        self._staged.append(lambda save: save.drop_rows(source, below_ordinal))

    def put_pending(self, source: SourceName, piece: int, rows: Batch) -> None:
        """Rows above NOW."""
        self._staged.append(lambda save: save.put_pending(source, piece, rows))

    def drop_pending(self, source: SourceName, piece: int) -> None:
        """All rows of the piece are visible by now."""
        self._staged.append(lambda save: save.drop_pending(source, piece))

    def put_query(self, state: QueryState) -> None:
        """Create or replace."""
        self._staged.append(lambda save: save.put_query(state))

    def swap_query(self, state: QueryState) -> None:
        """Have a query where :meth:`queries` does not give it."""
        self._staged.append(lambda save: save.swap_query(state))

    def drop_query(self, query_id: str) -> None:
        """Harmless where there is none."""
        self._staged.append(lambda save: save.drop_query(query_id))

    def put_held(self, state: HeldState) -> None:
        """Create or replace what joins hold of a stream."""
        self._staged.append(lambda save: save.put_held(state))

    def drop_held(self, over: tuple[SourceName, ...], source: SourceName) -> None:
        """Harmless where there is nothing."""
        self._staged.append(lambda save: save.drop_held(over, source))

    def put_part(self, name: str, tree: Tree) -> None:
        """Create or replace the state of a part."""
        self._staged.append(lambda save: save.put_part(name, tree))

    def drop_part(self, name: str) -> None:
        """Harmless where there is none."""
        self._staged.append(lambda save: save.drop_part(name))

    def commit(self, position: Position) -> None:
        """Make all that was put durable, with the position it is true at.

        Raises StoreFull: nothing changed, put it again later. StoreCorrupt: what is stored is damaged.
        """
        staged, self._staged = self._staged, []
        database = self._require()
        save = Save(database, self._doubtful, self._floors)
        for put in staged:
            put(save)
        number = self._saves + 1
        assert self._links is not None
        self._links.put(save.changes, number)
        save.changes.put(POSITIONS, POSITION_KEY, state_codec.encode_position(position, number))
        try:
            database.write(save.changes)
        except StoreError:
            self._doubtful |= save.keys_put
            self._close_database()
            with suppress(StoreError):
                self._open()
            if self._saves != number:
                raise
        else:
            self._links.committed(number)
        self._position, self._saves = position, number
        self._floors = save.floors
        self._doubtful.clear()

    # --- what the engine reads ----------------------------------------------------------------------

    def position(self) -> Position | None:
        """Position of the last commit; None before the first."""
        return self._position

    def sources(self) -> Iterator[SourceState]:
        """By name."""
        for key, value in self._require().scan(SOURCES):
            yield state_codec.decode_source(value, _named("source", key))

    def derived(self) -> Iterator[Derived]:
        """Views and derived streams, by name."""
        for key, value in self._with_prefix(VIEW_PREFIX):
            yield state_codec.decode_derived(value, _named("view", key.removeprefix(VIEW_PREFIX)))

    def held(self) -> Iterator[HeldState]:
        """The held rows of the streams that are there."""
        schemas = {state.stream.name: state.stream.stored_schema for state in self.sources()}
        for key, value in self._with_prefix(HELD_PREFIX):
            state = decode_held(value, schemas, _named("held rows", key.removeprefix(HELD_PREFIX)))
            if state is not None:
                yield state

    def state_parts(self, prefix: str) -> Iterator[tuple[str, Tree]]:
        """The parts whose names begin with ``prefix``, by name."""
        for key, value in self._with_prefix(part_key(prefix)):
            name = key.removeprefix(PART_PREFIX).decode("utf-8", "surrogatepass")
            yield name, decode_tree(value, f"state of {name!r}")

    def _with_prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._require().scan(META, prefix, prefix[:-1] + bytes([prefix[-1] + 1]))

    def queries(self) -> Iterator[QueryState]:
        """By query id."""
        for key, value in self._require().scan(QUERIES):
            yield state_codec.decode_query(value, _named("query", key))

    def swapped_query(self, query_id: str) -> QueryState | None:
        """A query that is swapped out; None: there is none of this id. One read of the database."""
        key = name_key(query_id)
        value = self._require().get(SWAPPED, key)
        return None if value is None else state_codec.decode_query(value, _named("query", key))

    def swapped_queries(self) -> Iterator[QueryState]:
        """Those that are swapped out, by query id."""
        for key, value in self._require().scan(SWAPPED):
            yield state_codec.decode_query(value, _named("query", key))

    def rows(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        """(first ordinal, rows), ascending, without gaps. Raises StoreCorrupt where there is a gap."""
        end: int | None = None
        for first, rows, key in self._batches(source, RowKind.VISIBLE, "rows of {} from ordinal {}"):
            if end is not None and first != end:
                raise corrupt(key, f"the rows before it end at ordinal {end}")
            end = first + len(rows)
            yield first, rows

    def pending(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        """(piece, rows), ascending."""
        for piece, rows, _ in self._batches(source, RowKind.PENDING, "pending rows of {}, piece {}"):
            yield piece, rows

    def _batches(self, source: SourceName, kind: RowKind, naming: str) -> Iterator[tuple[int, Batch, str]]:
        schema = self._schema(source)
        if schema is None:
            return
        for key, value in self._require().scan(SEGMENTS, *rows_range(source, kind)):
            number = key_number(key)
            name = naming.format(source, number)
            yield number, row_codec.decode(value, schema, name), name

    def _schema(self, source: SourceName) -> Schema | None:
        key = name_key(source)
        value = self._require().get(SOURCES, key)
        if value is None:
            return None
        return state_codec.decode_source(value, _named("source", key)).stream.stored_schema

    # --- the database, which a failed write makes us open again ---------------------------------------

    def _require(self) -> Database:
        return self._open() if self._database is None else self._database

    def _open(self) -> Database:
        """Open and read the position; a write that was in doubt is settled by it."""
        database = Database(self.directory, self._options)
        try:
            mark = database.get(META, FORMAT_KEY)
            if mark is None:
                changes = Changes()
                changes.put(META, FORMAT_KEY, state_codec.encode_format())
                database.write(changes)
            else:
                state_codec.check_format(mark, f"{META}/format")
            value = database.get(POSITIONS, POSITION_KEY)
            saves = 0
            if value is not None:
                self._position, saves = state_codec.decode_position(value, f"{POSITIONS}/engine")
            self._links = Links(database, saves)
        except BaseException:
            database.close()
            raise
        if saves == self._saves:
            self._doubtful.clear()
        self._saves = saves
        self._database = database
        return database

    def _close_database(self) -> None:
        if self._database is not None:
            self._links = None
            self._database.close()
            self._database = None


def _named(what: str, key: bytes) -> str:
    return f"{what} {key.decode('utf-8', 'replace')!r}"
