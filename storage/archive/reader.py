"""Rows of archived streams as batches of the engine, without Spark.

An :class:`ArchivedStream` is one version of a table: what is committed later, or taken away by retention,
does not show in it, and its coverage speaks of that version. Rows come in the order (timestamp, partition,
offset), each (partition, offset) once, columns that a file lacks are NULL. Files are found by ``_date`` and
``_hour`` in the table's log: those of other hours are not opened. A table of a thin stream may have days in
the place of hours, here and below.

Cost: the log is read once, when the stream is asked for; its files are listed once for each call, O(files of
the days asked for). Memory: the rows of one hour, and the chunk that is given out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.source import HOUR_MS, Stream
from engine.model.types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from storage.archive import layout
from storage.archive.coverage import COMMITS_LOOKED_AT, Coverage, in_force
from storage.archive.errors import ArchiveMismatch, ArchiveMissing, ArchiveUnreadable, ColumnMismatch
from storage.archive.rows import to_batch
from tureen.errors import LimitExceeded

if TYPE_CHECKING:  # else imported where it is needed: it takes long, and most brokers have no archive
    import pyarrow.dataset as ds

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_HOURS_OF_DAY = 24
_FEATURES_HINT = (
    "tables of the archive have no deletion vectors and no column mapping: was such a feature switched on?"
)


class Archive:
    """An archive by its root: a directory, or a URI that Delta readers understand.

    storage_options: names and passwords of the storage, as the deltalake package takes them.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        """Looks at nothing yet."""
        self.root = root
        self._options = dict(storage_options or {})

    def stream(self, name: str) -> ArchivedStream | None:
        """The newest version of a stream's table; None where it has none.

        Raises ArchiveMissing, ArchiveUnreadable, ArchiveVersionUnknown.
        """
        uri = layout.table_uri(self.root, "streams", name)
        with _reading(uri):
            try:
                table = DeltaTable(uri, storage_options=self._options)
            except TableNotFoundError:
                if "://" not in self.root and not Path(self.root).is_dir():
                    raise ArchiveMissing(
                        self.root, hint="the archive job creates it; was it given this directory?"
                    ) from None
                return None
            commits = table.history(COMMITS_LOOKED_AT)
        version = table.version()
        # A commit may have come between the two; what it says is not of this version.
        texts = [one.get("userMetadata") for one in commits if one.get("version", 0) <= version]
        coverage = in_force(texts)
        if coverage is None:
            raise ArchiveUnreadable(
                uri,
                "none of its newest commits states which records of the topic it has",
                hint="other writers must repeat the userMetadata of the previous commit",
            )
        return ArchivedStream(uri, coverage, version, table)


@dataclass(slots=True)
class ArchivedStream:
    """One version of a stream's table. Not to be shared among threads."""

    uri: str
    coverage: Coverage
    version: int
    _table: DeltaTable = field(repr=False)

    def count(self, from_ms: int, until_ms: int) -> int:
        """How many rows have from_ms <= timestamp < until_ms; from the log but for hours cut through.

        Raises ArchiveUnreadable.
        """
        found = 0
        with _reading(self.uri):
            part_ms = self._part_ms()
            for hour, files in self._hours(from_ms, until_ms):
                if from_ms <= hour and hour + part_ms <= until_ms:
                    found += self._dataset(files).count_rows()
                else:
                    found += self._dataset(files).count_rows(filter=_between(from_ms, until_ms))
        return found

    def rows(self, stream: Stream, *, from_ms: int, until_ms: int, rows_max: int) -> Iterator[Batch]:
        """Rows with from_ms <= timestamp < until_ms, in order, at most BATCH_ROWS_MAX at once.

        stream: as declared now. Raises LimitExceeded (more than ``rows_max``) and ArchiveMismatch before the
        first batch, ArchiveUnreadable at any.
        """
        self._check(stream)
        found = self.count(from_ms, until_ms)
        if found > rows_max:
            raise LimitExceeded(
                "archive_rows_max", rows_max, found, hint="ask for a shorter time, or raise the limit"
            )
        return self._rows(stream, from_ms, until_ms)

    def chunks_backward(self, stream: Stream, from_ms: int, until_ms: int, rows: int) -> Iterator[Batch]:
        """Read the rows that :meth:`rows` gives in batches of ``rows``, the last batch first; each batch is
        in order.

        The last batch given, which has the first rows, may have fewer. Raises ArchiveMismatch before the
        first batch, ArchiveUnreadable at any.
        """
        self._check(stream)
        return self._backward(stream, from_ms, until_ms, rows)

    def _rows(self, stream: Stream, from_ms: int, until_ms: int) -> Iterator[Batch]:
        for _, files in self._listed(from_ms, until_ms):
            rows = self._sorted(stream, files, from_ms, until_ms)
            for start in range(0, rows.num_rows, BATCH_ROWS_MAX):
                yield to_batch(stream, rows.slice(start, BATCH_ROWS_MAX))

    def _backward(self, stream: Stream, from_ms: int, until_ms: int, rows: int) -> Iterator[Batch]:
        pending: pa.Table | None = None
        for _, files in reversed(self._listed(from_ms, until_ms)):
            earlier = self._sorted(stream, files, from_ms, until_ms)
            pending = earlier if pending is None else pa.concat_tables([earlier, pending])
            while pending.num_rows >= rows:
                left = pending.num_rows - rows
                yield to_batch(stream, pending.slice(left))
                pending = pending.slice(0, left)
        if pending is not None and pending.num_rows:
            yield to_batch(stream, pending)

    def _check(self, stream: Stream) -> None:
        """Raises ArchiveMismatch: a column has another type here, or one is a stream, the other a table."""
        with _reading(self.uri):
            found = pa.schema(self._table.schema().to_arrow())
        if stream.is_table != (layout.DELETED in found.names):
            archived = "stream" if stream.is_table else "table"
            raise ArchiveMismatch(
                f"{stream.name} is a {stream.kind}, and {self.uri} has the rows of a {archived}",
                hint="archive it into another directory",
            )
        for declared in layout.stream_schema(stream):
            place = found.get_field_index(declared.name)
            if place >= 0 and found.field(place).type != declared.type:
                raise ColumnMismatch(
                    self.uri,
                    declared.name,
                    str(found.field(place).type),
                    str(declared.type),
                    hint="declare the column as it was, or another column, or archive into another directory",
                )

    def _listed(self, from_ms: int, until_ms: int) -> list[tuple[int, list[Any]]]:
        with _reading(self.uri):
            return self._hours(from_ms, until_ms)

    def _hours(self, from_ms: int, until_ms: int) -> list[tuple[int, list[Any]]]:
        """The files of each hour (or day) that may have such rows: (its first ms, fragments), ascending."""
        first, last = max(from_ms, TIMESTAMP_MS_MIN), min(until_ms - 1, TIMESTAMP_MS_MAX)
        if first > last:
            return []
        wanted: list[tuple[str, str, Any]] = [
            (layout.DATE, ">=", str(_day(first))),
            (layout.DATE, "<=", str(_day(last))),
        ]
        from pyarrow.dataset import get_partition_keys

        hours: dict[int, list[Any]] = {}
        part_ms = self._part_ms()
        for fragment in self._table.to_pyarrow_dataset(file_pruning_predicate=wanted).get_fragments():
            place = get_partition_keys(fragment.partition_expression)
            day = place[layout.DATE].toordinal() - _EPOCH_DAY
            start = (day * _HOURS_OF_DAY + int(place.get(layout.HOUR, 0))) * HOUR_MS
            if start <= last and start + part_ms > first:
                hours.setdefault(start, []).append(fragment)
        return sorted(hours.items())

    def _part_ms(self) -> int:
        """What a partition of the table holds: an hour, or a day."""
        by_hour = layout.HOUR in self._table.metadata().partition_columns
        return HOUR_MS if by_hour else _HOURS_OF_DAY * HOUR_MS

    def _dataset(self, files: Sequence[Any]) -> ds.Dataset:
        from pyarrow.dataset import FileSystemDataset

        schema = pa.schema(self._table.schema().to_arrow())
        return FileSystemDataset(files, schema, files[0].format, files[0].filesystem)

    def _sorted(self, stream: Stream, files: Sequence[Any], from_ms: int, until_ms: int) -> pa.Table:
        """The rows of an hour in order, each once, with the columns there are."""
        with _reading(self.uri):
            dataset = self._dataset(files)
            there = [one.name for one in layout.stream_schema(stream) if one.name in dataset.schema.names]
            columns = [name for name in there if name not in (layout.DATE, layout.HOUR)]
            rows = dataset.to_table(columns=columns, filter=_between(from_ms, until_ms))
        partition, offset, timestamp = (
            rows.column(name).to_numpy() for name in (layout.PARTITION, layout.OFFSET, layout.TIMESTAMP)
        )
        order = np.lexsort((offset, partition, timestamp))
        if len(order) > 1:
            again = (np.diff(partition[order]) == 0) & (np.diff(offset[order]) == 0)
            order = order[np.concatenate([[True], ~again])]
        return rows.take(order)


def _between(from_ms: int, until_ms: int) -> pc.Expression:
    timestamp = pc.field(layout.TIMESTAMP)
    return (timestamp >= max(from_ms, TIMESTAMP_MS_MIN)) & (timestamp < min(until_ms, TIMESTAMP_MS_MAX + 1))


def _day(ms: int) -> date:
    return date.fromordinal(_EPOCH_DAY + ms // (_HOURS_OF_DAY * HOUR_MS))


@contextmanager
def _reading(uri: str) -> Iterator[None]:
    """Around what reads the table. Raises ArchiveUnreadable."""
    try:
        yield
    except DeltaError as error:
        raise ArchiveUnreadable(uri, _first_line(error), hint=_FEATURES_HINT) from error
    except FileNotFoundError as error:
        raise ArchiveUnreadable(
            uri,
            f"a file named in its log is gone: {_first_line(error)}",
            hint="VACUUM must keep files for as long as readers may use an older version; try again",
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise ArchiveUnreadable(
            uri, _first_line(error), hint="is the storage reachable, and readable with these credentials?"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
