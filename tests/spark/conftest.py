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


@pytest.fixture(scope="session")
def spark(packages_fetched: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    conf = {
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = start("tests", SparkSettings("local[1]", "512m", conf))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever takes the session is marked, so that ``-m 'not spark'`` leaves it out.

    Its time counts from when the session stands: fetching and starting have limits of their own.
    """
    for item in items:
        if item.path.is_relative_to(HERE) and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(120, func_only=True))
