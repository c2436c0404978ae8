"""Rows put aside as one Parquet file of a given name: written again, it is the same file.

The directory is flat, as one that batch runs append to, so that any reader takes both.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from spark_jobs.failures import writing_files


def put_aside(rows: DataFrame, directory: str, name: str) -> None:
    """Write ``<directory>/<name>.parquet``, in place of one that is there. Raises PathNotWritable."""
    root = directory.rstrip("/")
    fresh = f"{root}/.{name}"  # readers pass over names that begin so
    with writing_files(directory):
        rows.coalesce(1).write.mode("overwrite").parquet(fresh)
        session = rows.sparkSession
        jvm: Any = session._jvm
        jsc: Any = session._jsc
        path = jvm.org.apache.hadoop.fs.Path
        files = path(root).getFileSystem(jsc.hadoopConfiguration())
        [part] = [
            status.getPath()
            for status in files.listStatus(path(fresh))
            if status.getPath().getName().startswith("part-")
        ]
        target = path(f"{root}/{name}.parquet")
        files.delete(target, False)
        files.rename(part, target)
        files.delete(path(fresh), True)
