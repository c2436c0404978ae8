"""The benchmark at a tiny size, in the tests' session: it compares both sides with numpy by itself."""

from __future__ import annotations

import argparse

import pytest
from pyspark.sql import SparkSession

from benchmarks.spark_scale_out import add_arguments, measure


@pytest.mark.slow
def test_both_sides_count_what_numpy_does(spark: SparkSession) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args(["--queries", "60", "--rows", "2000", "--sql-tests", "30000", "--each", "1"])
    options.seed = 1

    figures = measure(spark, 1, options, alone=True)

    for name in ("rows_per_s.q60.e1", "spark_sql_rows_per_s.q60.e1", "ratio_to_spark_sql.q60"):
        assert float(figures[name]) > 0
