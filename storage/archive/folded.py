"""Current and history tables, as compaction makes them, read without Spark. Memory: the rows asked for."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from storage.archive.errors import ArchiveMissing, ArchiveUnreadable


def read_folded(uri: str, storage_options: Mapping[str, str] | None = None) -> pa.Table:
    """All rows of the table's newest version. Raises ArchiveMissing, ArchiveUnreadable."""
    try:
        return DeltaTable(uri, storage_options=dict(storage_options or {})).to_pyarrow_table()
    except TableNotFoundError:
        raise ArchiveMissing(uri, hint="`tureen spark run compact` makes it, with --query") from None
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise ArchiveUnreadable(uri, str(error)) from error
