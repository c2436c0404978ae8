"""What a stream has to know again about each of its micro-batches: a small JSON file for each, by number.

A file is written whole under another name and renamed, before the micro-batch does anything by it. Files of
batches that Spark can't ask for again are deleted. The directory is reached by Spark's own classes, and may
be on any file system that Spark writes.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.failures import writing_files
from spark_jobs.files import DirectoryFiles

KEPT = 200
"""More than the micro-batches that Spark remembers (spark.sql.streaming.minBatchesToRetain, 100)."""


class Remembered:
    """The files of one directory, which is made if it is missing. All methods raise PathNotWritable.

    kept: so many of the last are left when another is written.
    """

    def __init__(self, session: SparkSession, path: str, kept: int = KEPT) -> None:
        self._path = path
        self._kept = kept
        with writing_files(path):
            self._files = DirectoryFiles(session, path)
            self._files.make()
            self._numbers = sorted(int(name) for name in self._files.names() if name.isdigit())

    def of(self, number: int) -> dict[str, Any] | None:
        """What is noted of this batch."""
        if number not in self._numbers:
            return None
        with writing_files(self._path):
            found: dict[str, Any] = json.loads(self._files.read(_name(number)))
        return found

    def before(self, number: int) -> dict[str, Any] | None:
        """What is noted of the last batch before this one."""
        earlier = [other for other in self._numbers if other < number]
        return self.of(earlier[-1]) if earlier else None

    def note(self, number: int, what: dict[str, Any]) -> None:
        """Keep it; there must be no note of this batch yet."""
        with writing_files(self._path):
            if not self._files.create(_name(number), json.dumps(what)):
                raise OSError(f"batch {number} is noted already")
            for old in self._numbers[: -self._kept]:
                self._files.delete(_name(old))
        self._numbers.append(number)


def _name(number: int) -> str:
    return f"{number:012}"
