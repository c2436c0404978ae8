"""One small Spark session for all tests of the jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.errors import JavaUnsuitable
from spark_jobs.session import SparkSettings, start

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    conf = {
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    try:
        session = start("tests", SparkSettings("local[1]", "512m", conf))
    except JavaUnsuitable as unsuitable:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"Spark does not run here: {unsuitable}")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever takes the session is marked, so that ``-m 'not spark'`` leaves it out."""
    for item in items:
        if item.path.is_relative_to(HERE) and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
