"""One small Spark session for all tests of the jobs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import packages
from spark_jobs.errors import JavaUnsuitable
from spark_jobs.session import find_java, start
from spark_jobs.settings import SparkSettings
from tests import budgets

TEST_S = 120
HERE = Path(__file__).parent
FETCH_S = 240
"""Connector, Delta Lake and what they need are some 70 MB; fetched once for a machine."""

FETCH = (
    "from spark_jobs.session import start; from spark_jobs.settings import SparkSettings; "
    "start('fetch', SparkSettings('local[1]', '512m')).stop()"
)


@pytest.fixture(scope="session")
def java() -> None:
    """There is a Java that Spark runs on."""
    try:
        find_java()
    except JavaUnsuitable as unsuitable:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"Spark does not run here: {unsuitable}")


@pytest.fixture(scope="session")
def packages_fetched(java: None) -> None:
    """The packages are in the cache: fetched by a process of its own, which has more time than a test has."""
    if not packages.missing():
        return
    print(f"Fetching {' and '.join(packages.CLASSES)} into {packages.directory()}: at most {FETCH_S} s")
    done = subprocess.run(
        [sys.executable, "-c", FETCH],
        cwd=HERE.parents[1],
        timeout=FETCH_S,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:]


FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Code made for a plan, and a plan made anew on its way, cost more than a few rows give back.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
LOCAL_FILES = {
    # Hadoop starts a process to set a file's mode, another for its checksum's, and two to change a name:
    # thousands in a run. These do with fewer.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    ),
}
JAVA = (
    "-XX:TieredStopAtLevel=1",  # most code runs a few times
    "-XX:ReservedCodeCacheSize=256m",  # one compiler alone has 48, which are full half-way, and swept
    "-XX:+UseSerialGC",
    "-Xms768m",
    "-Xmn300m",
)


@pytest.fixture(scope="session")
def spark(packages_fetched: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session, set for a few rows at a time; what runs as its own process has Spark's defaults."""
    conf = {
        **FEW_ROWS,
        **LOCAL_FILES,
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": " ".join(JAVA),
    }
    session = start("tests", SparkSettings("local[1]", "768m", conf))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever takes the session is marked, so that ``-m 'not spark'`` leaves it out.

    Its time counts from when the session stands: fetching and starting have limits of their own.
    """
    for item in items:
        if item.path.is_relative_to(HERE) and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(budgets.time_limit(config, TEST_S), func_only=True))
