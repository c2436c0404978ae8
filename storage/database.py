"""RocksDB by rocksdict: how it is opened, written and scanned, and what its errors mean.

rocksdict raises plain ``Exception`` with RocksDB's status as text, whose first word is its kind; this module
is the one place that looks at it.

After a write that failed RocksDB refuses all others, even once the cause is gone, until the database is
opened anew. A batch whose write failed is either in the database then or not, as a whole.

Small memory: the write buffers of all column families share one budget, blocks come from a bounded cache,
few files are held open. Nothing is compressed in ``segments``: rows are, already.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocksdict import (
    BlockBasedOptions,
    Cache,
    ColumnFamily,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from storage.frames import REBUILD_HINT
from storage.keys import COLUMN_FAMILIES, FORMER_FAMILIES, SEGMENTS, SWAPPED
from storage.owner import in_use
from tureen.errors import StoreCorrupt, StoreError, StoreFull, StoreVersionUnknown

_DEFAULT = "default"  # RocksDB's own, always there and always empty
_LOG_BYTES_MAX = 1 << 20
_LOG_NAME = re.compile(r"\d+\.log")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a store costs.

    sync: a commit returns once its bytes are on the device; without it the last ones may be lost to a power
    cut (not to a killed process), and are replayed from the journal then.
    block_cache_bytes, write_buffer_bytes: memory, of each store. wal_bytes_max: how much a start re-reads.
    open_files_max: files held open.
    """

    sync: bool = True
    block_cache_bytes: int = 8 << 20
    write_buffer_bytes: int = 8 << 20
    wal_bytes_max: int = 32 << 20
    open_files_max: int = 64


class Database:
    """An open RocksDB. The caller holds the directory's lock, and uses it from one thread at a time."""

    def __init__(self, directory: Path, options: StoreOptions) -> None:
        """Open, or create where there is none.

        Raises StoreFull, StoreCorrupt, StoreVersionUnknown, StoreInUse.
        """
        self.directory = directory
        former = _former_families(directory)
        cache = Cache(options.block_cache_bytes)
        families = {name: _family_options(name, cache, options) for name in (*COLUMN_FAMILIES, *former)}
        try:
            self._db = Rdict(str(directory), _database_options(options), column_families=families)
            for name in former:
                self._db.drop_column_family(name)
        except Exception as error:
            raise explain(error, directory) from error
        self._families: dict[str, Rdict] = {n: self._db.get_column_family(n) for n in COLUMN_FAMILIES}
        self._handles: dict[str, ColumnFamily] = {
            n: self._db.get_column_family_handle(n) for n in COLUMN_FAMILIES
        }
        self._write_options = WriteOptions()
        self._write_options.sync = options.sync

    def get(self, family: str, key: bytes) -> bytes | None:
        """One value. Raises StoreCorrupt."""
        try:
            value: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise explain(error, self.directory) from error
        return value

    def scan(
        self, family: str, begin: bytes = b"", end: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) with begin <= key < end, ascending. Raises StoreCorrupt."""
        try:
            iterator = self._families[family].iter(ReadOptions())
            iterator.seek(begin)
            while iterator.valid():
                key: bytes = iterator.key()
                if end is not None and key >= end:
                    return
                yield key, iterator.value()
                iterator.next()
            iterator.status()
        except StoreError:
            raise
        except Exception as error:
            raise explain(error, self.directory) from error

    def scan_back(self, family: str, begin: bytes, last: bytes) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) with begin <= key <= last, descending. Raises StoreCorrupt."""
        try:
            iterator = self._families[family].iter(ReadOptions())
            iterator.seek_for_prev(last)
            while iterator.valid():
                key: bytes = iterator.key()
                if key < begin:
                    return
                yield key, iterator.value()
                iterator.prev()
            iterator.status()
        except StoreError:
            raise
        except Exception as error:
            raise explain(error, self.directory) from error

    def write(self, changes: Changes) -> None:
        """All changes or none, in their order. Raises StoreError; the database must be closed then."""
        batch = WriteBatch(raw_mode=True)
        for family, key, value, end in changes.entries:
            if value is not None:
                batch.put(key, value, self._handles[family])
            elif end is not None:
                batch.delete_range(key, end, self._handles[family])
            else:
                batch.delete(key, self._handles[family])
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:
            raise explain(error, self.directory) from error

    def newest_log(self) -> int:
        """The number of the file of the log that was begun last; 0: there is none."""
        with os.scandir(self.directory) as found:
            return max((int(one.name[:-4]) for one in found if _LOG_NAME.fullmatch(one.name)), default=0)

    def close(self) -> None:
        """Write the buffers out and let go. After a failed write they stay in the log, for the next open."""
        self._handles.clear()
        for family in self._families.values():
            with contextlib.suppress(Exception):
                family.close()
        self._families.clear()
        with contextlib.suppress(Exception):
            self._db.close()
        del self._db


class Changes:
    """Puts and deletes for one write, in order: (family, key, value or None, end of a range or None)."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[tuple[str, bytes, bytes | None, bytes | None]] = []

    def put(self, family: str, key: bytes, value: bytes) -> None:
        self.entries.append((family, key, value, None))

    def delete(self, family: str, key: bytes) -> None:
        self.entries.append((family, key, None, None))

    def delete_range(self, family: str, begin: bytes, end: bytes) -> None:
        """All keys with begin <= key < end; one small entry however many there are."""
        self.entries.append((family, begin, None, end))


def explain(error: Exception, directory: Path) -> StoreError:
    """The error of ours that RocksDB's status means."""
    status = str(error)
    missing = status.startswith("IO error") and "No such file or directory" in status
    if missing or status.startswith(("Corruption", "Invalid argument", "Not implemented")):
        return StoreCorrupt(f"the store at {directory} is damaged: {status}", hint=REBUILD_HINT)
    if "/LOCK: " in status:
        return in_use(directory, None)
    return StoreFull(
        f"the store at {directory} cannot be written: {status}",
        hint="free space on its disk; nothing is lost, and saving continues by itself",
    )


def _former_families(directory: Path) -> list[str]:
    """Families that an earlier version left in a store. Raises StoreVersionUnknown for unknown ones."""
    if not os.path.exists(directory / "CURRENT"):
        return []
    try:
        found = set(Rdict.list_cf(str(directory)))
    except Exception as error:
        raise explain(error, directory) from error
    other = sorted(found - {*COLUMN_FAMILIES, *FORMER_FAMILIES, _DEFAULT})
    if other:
        raise StoreVersionUnknown(
            f"the store at {directory} holds {', '.join(other)}, which this broker does not know",
            hint="run the version of Tureen that wrote this store, or " + REBUILD_HINT,
        )
    return sorted(found & FORMER_FAMILIES)


def _database_options(options: StoreOptions) -> Options:
    chosen = Options(raw_mode=True)
    chosen.create_if_missing(True)
    chosen.create_missing_column_families(True)
    # Families reach their tables together: without its log, too, a database is as of one write.
    chosen.set_atomic_flush(True)
    chosen.set_db_write_buffer_size(options.write_buffer_bytes)
    chosen.set_max_total_wal_size(options.wal_bytes_max)
    chosen.set_max_open_files(options.open_files_max)
    chosen.set_max_background_jobs(2)
    chosen.set_keep_log_file_num(2)
    chosen.set_max_log_file_size(_LOG_BYTES_MAX)
    chosen.set_stats_dump_period_sec(0)
    chosen.set_stats_persist_period_sec(0)
    return chosen


def _family_options(name: str, cache: Cache, options: StoreOptions) -> Options:
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    if name == SWAPPED:  # whether a query that comes is in it is asked of each
        table.set_bloom_filter(10, block_based=False)
    chosen = Options(raw_mode=True)
    chosen.set_block_based_table_factory(table)
    chosen.set_write_buffer_size(options.write_buffer_bytes)
    chosen.set_compression_type(DBCompressionType.none() if name == SEGMENTS else DBCompressionType.lz4())
    return chosen
