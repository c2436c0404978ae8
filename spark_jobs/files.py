"""Small files of one directory, on any file system that Spark writes: reached by Spark's own classes.

A file is written whole under another name and renamed. That is a copy and a deletion on an object store, and
neither there nor on a disk does it fail where the new name is taken: no file here is a lock. What goes wrong
is raised as the JVM raises it; see :func:`spark_jobs.failures.writing_files`.
"""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql import SparkSession


class DirectoryFiles:
    """The directory, which need not be there yet."""

    def __init__(self, session: SparkSession, directory: str) -> None:
        jvm: Any = session._jvm
        jsc: Any = session._jsc
        self._directory = directory.rstrip("/") or directory
        self._path = jvm.org.apache.hadoop.fs.Path
        self._text = jvm.org.apache.commons.io.IOUtils.toString
        self._files = self._path(directory).getFileSystem(jsc.hadoopConfiguration())

    def make(self) -> None:
        """The directory, with those above it."""
        self._files.mkdirs(self._path(self._directory))

    def names(self) -> list[str]:
        """Names of what is in the directory; none where it is not there."""
        directory = self._path(self._directory)
        if not self._files.exists(directory):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(directory)]

    def exists(self, name: str) -> bool:
        return bool(self._files.exists(self._at(name)))

    def read(self, name: str) -> str:
        stream = self._files.open(self._at(name))
        try:
            return str(self._text(stream, "UTF-8"))
        finally:
            stream.close()

    def create(self, name: str, text: str) -> bool:
        """A new file, whole; False where there is one of that name, which stays. Of two at once one stays."""
        if self.exists(name):
            return False
        fresh = f".{name}.{uuid.uuid4().hex}"
        self.put(fresh, text)
        return self.rename(fresh, name)

    def put(self, name: str, text: str) -> None:
        """A file of this text, of which readers may see a part before it is whole."""
        stream = self._files.create(self._at(name), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def rename(self, name: str, to: str) -> bool:
        """The new name is there before the old one is gone, which it is in any case."""
        renamed = bool(self._files.rename(self._at(name), self._at(to)))
        if not renamed:
            self._files.delete(self._at(name), False)
        return renamed

    def delete(self, name: str) -> None:
        self._files.delete(self._at(name), False)

    def _at(self, name: str) -> Any:
        return self._path(f"{self._directory}/{name}")
