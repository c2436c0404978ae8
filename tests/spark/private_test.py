"""What a job on one machine keeps from its other users, and from files that lie where it was started."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def test_files_are_their_owners_alone(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    found = [tmp_path / "table", *(tmp_path / "table").rglob("*")]
    assert len(found) > 3
    assert [path for path in found if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_workers_take_no_code_from_the_working_directory(spark: SparkSession) -> None:
    told = spark.sparkContext.parallelize([0], 1).map(lambda _: (sys.flags.safe_path, "" in sys.path))
    assert told.collect() == [(True, False)]
