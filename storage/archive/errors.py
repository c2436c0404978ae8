"""What can go wrong with an archive, each with what to do about it."""

from __future__ import annotations

from typing import Any

from tureen.errors import TureenError


class ArchiveMissing(TureenError):
    """There is no archive at this place. ``uri`` is the place."""

    code = "archive_missing"

    def __init__(self, uri: str, **facts: Any) -> None:
        self.uri = uri
        super().__init__(f"there is no archive at {uri}", **facts)


class ArchiveUnreadable(TureenError):
    """A table of the archive, or a file of it, cannot be read. ``uri``: the table; ``reason``: why."""

    code = "archive_unreadable"

    def __init__(self, uri: str, reason: str, **facts: Any) -> None:
        self.uri = uri
        self.reason = reason
        super().__init__(f"{uri} cannot be read: {reason}", **facts)


class ArchiveVersionUnknown(TureenError):
    """Another version of Tureen wrote what a commit says about itself. ``version`` is that one."""

    code = "archive_version_unknown"

    def __init__(self, version: object, known: int, **facts: Any) -> None:
        self.version = version
        super().__init__(
            f"the archive's coverage is of version {version}, this Tureen knows {known}", **facts
        )


class ArchiveMismatch(TureenError):
    """A stream and its table in the archive do not fit each other."""

    code = "archive_mismatch"


class ColumnMismatch(ArchiveMismatch):
    """A column has another type in the archive than the stream declares."""

    code = "archive_column_mismatch"

    def __init__(self, table: str, column: str, archived: str, declared: str, **facts: Any) -> None:
        self.table = table
        self.name = column
        self.archived = archived
        self.declared = declared
        super().__init__(
            f"column {column} of {table} is {archived} in the archive and {declared} in the stream", **facts
        )
