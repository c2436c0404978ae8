"""Rows a second through standing selections on Spark's executors, beside the same queries as plain Spark SQL.

PSoup's selections (`benchmarks/psoup.py`): four columns, an interval on each with probability 0.7, a row
satisfies one query in nine. Both sides read the same records, as Kafka gives them (JSON in `value`), from
memory, decode them and give for every row the array of the queries that want it, to a sink that drops it. The
numbers of rows for each query are compared: those of numpy, of the executors and of Spark SQL.

Spark SQL is asked in several ways, since none is made for this. One pass that makes an array of `CASE WHEN
<condition> THEN <query> END` a query, as one array and as arrays of 50 put together: the faster of the two is
what the ratio is taken to. Besides, measured over few queries and extrapolated to all, as their names say: a
UNION ALL of one filter a query, and one query after another. And, though it is no filter and takes queries of
one shape only, a join with a table of all bounds.

The whole way is measured apart: records on a Kafka, `.queries` and `.sources`, the job's own micro-batches,
results in the result topic, with selections of which a row satisfies about two.

Figures: `rows_per_s.q<queries>.e<executors>`, the best of several passes; `spread.q<queries>.e<executors>`;
`ratio_to_spark_sql.q<queries>`, of one executor each; `matches_per_row.q<queries>`;
`spark_sql_rows_per_s.q<queries>.e<executors>`; `spark_sql_join_rows_per_s.q<queries>`;
`spark_sql_union_rows_per_s_extrapolated.q<queries>`, `spark_sql_each_rows_per_s_extrapolated.q<queries>`;
`end_to_end_rows_per_s`, `end_to_end_records_per_s`, `end_to_end_ms.<phase>`.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.psoup import COLUMNS, Bounds, Rows, make_bounds, make_rows
from benchmarks.report import Figure, Plot, Report, Series
from engine.model.step import Registration
from spark_jobs.scale_out.matching import matched
from spark_jobs.scale_out.micro_batch import Plan
from spark_jobs.session import start
from spark_jobs.settings import SparkSettings

PARTITIONS = 4
PASSES = 4
CHUNK = 50
UNITED = 10
JSON = ", ".join(f"{name} int" for name in COLUMNS) + ", ts bigint"
CREATE = (
    f"CREATE STREAM psoup ({', '.join(f'{name} INTEGER' for name in COLUMNS)}, ts TIMESTAMP NOT NULL) "
    "WITH (topic='psoup', timestamp='ts')"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries", action=Numbers, nargs="+", default=[1_000, 10_000], help="how many stand"
    )
    parser.add_argument("--executors", action=Numbers, nargs="+", default=[1, 2], help="cores of local Spark")
    parser.add_argument("--rows", type=int, default=400_000, help="rows of a pass (default: %(default)s)")
    parser.add_argument(
        "--sql-tests",
        type=int,
        default=20_000_000,
        help="rows times queries of a pass of Spark SQL (default: %(default)s)",
    )
    parser.add_argument("--each", type=int, default=5, help="queries that are run one after another")
    parser.add_argument("--memory", default="2g", help="of Spark (default: %(default)s)")
    parser.add_argument(
        "--end-to-end", action=argparse.BooleanOptionalAction, default=True, help="from Kafka to Kafka, too"
    )
    parser.add_argument("--end-to-end-rows", type=int, default=200_000, help="(default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """A session for each number of executors."""
    figures: dict[str, Figure] = {}
    for executors in options.executors:
        session = start("spark-scale-out", SparkSettings(f"local[{executors}]", options.memory))
        session.sparkContext.setLogLevel("OFF")
        try:
            figures |= measure(session, executors, options, alone=executors == min(options.executors))
            if options.end_to_end and executors == max(options.executors):
                figures |= end_to_end(session, options)
        finally:
            session.stop()
    ours = [float(figures[f"rows_per_s.q{q}.e{options.executors[0]}"]) for q in options.queries]
    theirs = [float(figures[f"spark_sql_rows_per_s.q{q}.e{options.executors[0]}"]) for q in options.queries]
    curves = [Series("Tureen", options.queries, ours), Series("Spark SQL", options.queries, theirs)]
    return Report(figures, Plot("standing queries", "rows/s", curves, log=True))


def measure(
    session: SparkSession, executors: int, options: argparse.Namespace, *, alone: bool
) -> dict[str, Figure]:
    """One number of executors. alone: the ways of Spark SQL that are no part of the ratio, too."""
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "8192")
    rng = np.random.default_rng(options.seed)
    rows = make_rows(rng, options.rows)
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory() as folder:
        records = _kept(session, _written(rows, Path(folder)))
        for queries in options.queries:
            bounds = make_bounds(rng, queries)
            name = f"q{queries}.e{executors}"
            mine = _Mine(session, bounds)
            seconds = _passes(lambda m=mine: m.of(records), PASSES)
            rate = options.rows / seconds[0]
            figures[f"rows_per_s.{name}"] = rate
            figures[f"spread.{name}"] = seconds[-1] / seconds[0] - 1
            few = max(8, min(options.rows, options.sql_tests // queries))
            figures |= _sql(records, rows.first(few), bounds, mine, name, figures)
            sql = float(figures[f"spark_sql_rows_per_s.{name}"])
            print(f"{name}: {rate:,.0f} rows/s, Spark SQL {sql:,.0f}", file=sys.stderr)
            if alone:
                figures[f"ratio_to_spark_sql.q{queries}"] = rate / sql
                figures |= _others(session, records, few, bounds, options.each)
        records.unpersist()
    return figures


def _written(rows: Rows, folder: Path) -> Path:
    """The rows as records, in files; row n has offset n."""
    values = [*rows.values.tolist(), rows.timestamp.tolist()]
    texts = [b'{"a":%d,"b":%d,"c":%d,"d":%d,"ts":%d}' % line for line in zip(*values, strict=True)]
    for partition in range(PARTITIONS):
        places = np.arange(partition, len(rows), PARTITIONS)
        table = pa.table(
            {
                "partition": pa.array(np.full(len(places), partition, np.int32)),
                "offset": pa.array(places),
                "value": pa.array([texts[place] for place in places.tolist()], pa.binary()),
            }
        )
        pq.write_table(table, folder / f"{partition}.parquet")
    return folder


def _kept(session: SparkSession, folder: Path) -> DataFrame:
    """The records in memory, a partition each."""
    files = [session.read.parquet(str(folder / f"{n}.parquet")).coalesce(1) for n in range(PARTITIONS)]
    records = reduce(DataFrame.unionAll, files).persist()
    records.count()
    return records


class _Mine:
    """The queries as the scale-out has them."""

    def __init__(self, session: SparkSession, bounds: Bounds) -> None:
        stream = psoup.create(1).catalogue["psoup"]
        registrations = (
            Registration(f"q{place}", psoup.text(one) + " EMIT CHANGES") for place, one in enumerate(bounds)
        )
        plan = Plan(len(bounds), ((stream, CREATE),), (), tuple((one, "rows") for one in registrations))  # type: ignore[arg-type]
        self._plan = session.sparkContext.broadcast(plan)

    def of(self, records: DataFrame) -> DataFrame:
        plan = self._plan
        return matched(records, "psoup", lambda: plan.value)


def _passes(frame: Callable[[], DataFrame], times: int) -> list[float]:
    """Seconds of each pass into nothing but the first, ascending."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        frame().write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds[1:])


# --- Spark SQL ------------------------------------------------------------------------------------


def _parsed(records: DataFrame) -> DataFrame:
    """The rows; each record is parsed once: as a plain expression Spark would parse it anew for every use."""
    row = F.from_json(F.col("value").cast("string"), JSON)
    return records.select("partition", "offset", F.inline(F.array(row)))


def _array(bounds: Bounds, chunk: int) -> str:
    """The expression of one pass: arrays of so many queries, put together."""
    cases = [f"CASE WHEN {psoup.condition(one) or 'true'} THEN {n} END" for n, one in enumerate(bounds)]
    parts = [
        f"filter(array({', '.join(cases[first : first + chunk])}), q -> q IS NOT NULL)"
        for first in range(0, len(cases), chunk)
    ]
    return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to ask, and its seconds."""

    frame: DataFrame
    seconds: float


def _sql(
    records: DataFrame, rows: Rows, bounds: Bounds, mine: _Mine, name: str, known: dict[str, Figure]
) -> dict[str, Figure]:
    """One pass of Spark SQL over some of the rows, in the faster way; its answers, and ours, are checked."""
    few = records.where(F.col("offset") < len(rows)).coalesce(PARTITIONS).persist()
    few.count()
    ways = []
    for chunk in (len(bounds), CHUNK):
        frame = _parsed(few).selectExpr("partition", "offset", f"{_array(bounds, chunk)} AS queries")
        try:
            ways.append(_Way(frame, _passes(lambda f=frame: f, 2)[0]))
        except (PySparkException, Py4JJavaError) as refused:  # limits of Spark's own
            print(f"{name}: arrays of {chunk} failed: {str(refused).splitlines()[0]}", file=sys.stderr)
    best = min(ways, key=lambda way: way.seconds)
    counts = np.array([int(psoup.matches(one, rows.values).sum()) for one in bounds])
    for what, frame in (("the executors", mine.of(few)), ("Spark SQL", best.frame)):
        told = frame.select(F.explode("queries").alias("q")).groupBy("q").count().collect()
        found = np.zeros(len(bounds), np.int64)
        for row in told:
            found[row.q] = row["count"]
        if not np.array_equal(found, counts):
            raise RuntimeError(f"{what} count other rows than numpy")
    few.unpersist()
    return {
        f"spark_sql_rows_per_s.{name}": len(rows) / best.seconds,
        f"matches_per_row.{name.partition('.')[0]}": float(counts.sum() / len(rows)),
    }


def _others(
    session: SparkSession, records: DataFrame, few: int, bounds: Bounds, each: int
) -> dict[str, Figure]:
    """The ways that are no part of the ratio, over fewer rows still."""
    queries = len(bounds)
    some = records.where(F.col("offset") < few).persist()
    some.count()
    parsed = _parsed(some)
    columns = [f"{side}_{name}" for name in COLUMNS for side in ("low", "high")]
    table = pa.table(
        {
            "q": pa.array(range(queries), pa.int32()),
            **{name: pa.array(bounds.reshape(queries, -1)[:, n]) for n, name in enumerate(columns)},
        }
    )
    inside = " AND ".join(f"{name} >= low_{name} AND {name} < high_{name}" for name in COLUMNS)
    joined = parsed.join(F.broadcast(session.createDataFrame(table.to_pandas())), F.expr(inside))
    seconds = _passes(lambda: joined.select("partition", "offset", "q"), 2)[0]
    figures: dict[str, Figure] = {f"spark_sql_join_rows_per_s.q{queries}": few / seconds}

    def filtered(place: int) -> DataFrame:
        wanted = parsed.where(psoup.condition(bounds[place]) or "true")
        return wanted.select("partition", "offset", F.lit(place).alias("q"))

    united = min(UNITED, queries)
    seconds = _passes(lambda: reduce(DataFrame.unionAll, map(filtered, range(united))), 2)[0]
    figures[f"spark_sql_union_rows_per_s_extrapolated.q{queries}"] = few / (seconds * queries / united)
    each = min(each, queries)
    seconds = sum(_passes(lambda n=place: filtered(n), 2)[0] for place in range(each))
    figures[f"spark_sql_each_rows_per_s_extrapolated.q{queries}"] = few / (seconds * queries / each)
    some.unpersist()
    return figures


# --- from Kafka to Kafka --------------------------------------------------------------------------


def end_to_end(session: SparkSession, options: argparse.Namespace) -> dict[str, Figure]:
    """The job's micro-batches over a topic that is there, 1,000 selections, on a Kafka of its own."""
    from benchmarks.ports import free_ports
    from topics.embedded import down, up

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = up(Path(folder), *free_ports(2))
        try:
            return from_kafka(session, running.bootstrap, Path(folder) / "checkpoint", options)
        finally:
            down(Path(folder))


def from_kafka(
    session: SparkSession, bootstrap: str, checkpoint: Path, options: argparse.Namespace
) -> dict[str, Figure]:
    """Measure the job's micro-batches on a Kafka that runs."""
    from spark_jobs.scale_out.driver import Driver
    from spark_jobs.scale_out.settings import ScaleOutSettings
    from spark_jobs.scale_out.shards.layout import Layout
    from spark_jobs.settings import StreamSettings
    from topics.admin import Admin, TopicPolicy
    from topics.producer import BatchProducer
    from tureen.protocol import TopicNames, query_id

    kafka = {"bootstrap.servers": bootstrap}
    names = TopicNames(f"bench{options.seed}")
    admin = Admin(kafka)
    admin.ensure_service_topics(names)
    admin.ensure([TopicPolicy("psoup", PARTITIONS, {})])
    rng = np.random.default_rng(options.seed)
    rows = make_rows(rng, options.end_to_end_rows)
    producer = BatchProducer(kafka)
    values = [*rows.values.tolist(), rows.timestamp.tolist()]
    texts = [b'{"a":%d,"b":%d,"c":%d,"d":%d,"ts":%d}' % line for line in zip(*values, strict=True)]
    producer.send_many("psoup", texts, partitions=(np.arange(len(texts)) % PARTITIONS).tolist())
    producer.send(names.sources, json.dumps({"sql": CREATE}).encode(), b"psoup")
    lows = rng.integers(0, 256, 1_000)
    for place, low in enumerate(lows.tolist()):
        sql = f"SELECT a, b, ts FROM psoup WHERE a = {low} AND b < 128 EMIT CHANGES"
        producer.send(names.queries, json.dumps({"sql": sql}).encode(), query_id(f"q{place}").encode())
    producer.close()
    stream = StreamSettings(str(checkpoint), once=True)
    settings = ScaleOutSettings(kafka, names.service_id, "bench", stream, Layout(1), len(rows) // 4)
    driver = Driver(session, settings, "bench")
    reports, seconds = [], []
    while True:
        began = time.perf_counter()
        report = driver.next()
        if report is None:
            break
        reports.append(report)
        seconds.append(time.perf_counter() - began)
    driver.close()
    now = int(rows.timestamp.max()) - 1
    seen = rows.values[:, rows.timestamp <= now]
    expected = int((np.bincount(lows, minlength=256)[seen[0]] * (seen[1] < 128)).sum())
    if sum(report.records for report in reports) != expected:
        raise RuntimeError(f"{sum(r.records for r in reports):,} result records, numpy finds {expected:,}")
    later = reports[1:] or reports  # the first compiles queries and kernels
    took = sum(seconds[1:] or seconds)
    figures: dict[str, Figure] = {
        "end_to_end_rows_per_s": sum(report.rows for report in later) / took,
        "end_to_end_records_per_s": sum(report.records for report in later) / took,
    }
    for phase in later[0].phases_ms:
        figures[f"end_to_end_ms.{phase}"] = float(np.mean([report.phases_ms[phase] for report in later]))
    return figures
