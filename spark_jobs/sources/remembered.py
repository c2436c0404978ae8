"""What a stream has to know again about each of its micro-batches: a small JSON file for each, by number.

A file is written whole under another name and renamed, before the micro-batch does anything by it. Files of
batches that Spark can't ask for again are deleted. The directory is reached by Spark's own classes, and may
be on any file system that Spark writes.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.failures import writing_files

KEPT = 200
"""More than the micro-batches that Spark remembers (spark.sql.streaming.minBatchesToRetain, 100)."""


class Remembered:
    """The files of one directory, which is made if it is missing. All methods raise PathNotWritable.

    kept: so many of the last are left when another is written.
    """

    def __init__(self, session: SparkSession, path: str, kept: int = KEPT) -> None:
        jvm: Any = session._jvm
        jsc: Any = session._jsc
        self._path = path
        self._kept = kept
        self._at = jvm.org.apache.hadoop.fs.Path
        self._read = jvm.org.apache.commons.io.IOUtils.toString
        with writing_files(path):
            self._files = self._at(path).getFileSystem(jsc.hadoopConfiguration())
            self._files.mkdirs(self._at(path))
            listed = (status.getPath().getName() for status in self._files.listStatus(self._at(path)))
            self._numbers = sorted(int(name) for name in listed if name.isdigit())

    def of(self, number: int) -> dict[str, Any] | None:
        """What is noted of this batch."""
        if number not in self._numbers:
            return None
        with writing_files(self._path):
            stream = self._files.open(self._at(f"{self._path}/{number:012}"))
            try:
                found: dict[str, Any] = json.loads(self._read(stream, "UTF-8"))
            finally:
                stream.close()
        return found

    def before(self, number: int) -> dict[str, Any] | None:
        """What is noted of the last batch before this one."""
        earlier = [other for other in self._numbers if other < number]
        return self.of(earlier[-1]) if earlier else None

    def note(self, number: int, what: dict[str, Any]) -> None:
        """Keep it; there must be no note of this batch yet."""
        with writing_files(self._path):
            fresh = self._at(f"{self._path}/.{number}.{uuid.uuid4().hex}")
            stream = self._files.create(fresh, True)
            try:
                stream.write(json.dumps(what).encode())
            finally:
                stream.close()
            if not self._files.rename(fresh, self._at(f"{self._path}/{number:012}")):
                raise OSError(f"batch {number} is noted already")
            for old in self._numbers[: -self._kept]:
                self._files.delete(self._at(f"{self._path}/{old:012}"), False)
        self._numbers.append(number)
