"""What can go wrong around a Spark job, each with what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tureen.errors import TureenError


class SparkError(TureenError):
    """The root of what goes wrong in or around Spark."""

    code = "spark"


class JavaUnsuitable(SparkError):
    """No Java that this Spark runs on. ``found``: what there is instead, one text each."""

    code = "java_unsuitable"

    def __init__(self, lowest: int, highest: int, found: Sequence[str], **facts: Any) -> None:
        self.lowest = lowest
        self.highest = highest
        self.found = tuple(found)
        there = f"; found {', '.join(self.found)}" if self.found else ", and none was found"
        super().__init__(f"Spark needs a Java from {lowest} to {highest}{there}", **facts)


class PackageMissing(SparkError):
    """Spark's Kafka connector or Delta Lake could not be fetched, or is not on the class path."""

    code = "package_missing"


class InputMissing(SparkError):
    """No file is at this path. ``path`` is the one."""

    code = "input_missing"

    def __init__(self, path: str, **facts: Any) -> None:
        self.path = path
        super().__init__(f"there is no file at {path}", **facts)


class InputUnreadable(SparkError):
    """Files are there, and Spark can't read them as what they are said to be."""

    code = "input_unreadable"

    def __init__(self, paths: Sequence[str], reason: str, **facts: Any) -> None:
        self.paths = tuple(paths)
        self.reason = reason
        super().__init__(f"{', '.join(self.paths)} cannot be read: {reason}", **facts)


class InputMismatch(SparkError):
    """The input as a whole does not fit the stream: columns are missing, or of other types."""

    code = "input_mismatch"


class RowsRefused(SparkError):
    """Rows do not fit and no quarantine path was given. ``rows`` of them; ``examples`` of reasons."""

    code = "rows_refused"

    def __init__(self, rows: int, examples: Sequence[str], **facts: Any) -> None:
        self.rows = rows
        self.examples = tuple(examples)
        listed = "".join(f"\n  {example}" for example in self.examples)
        what = "1 row does" if rows == 1 else f"{rows:,} rows do"
        super().__init__(f"{what} not fit the stream; nothing was written{listed}", **facts)


class PathNotWritable(SparkError):
    """A path of the job's output cannot be written."""

    code = "path_not_writable"

    def __init__(self, path: str, reason: str, **facts: Any) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} cannot be written: {reason}", **facts)
