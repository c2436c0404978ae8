"""Spark's Kafka connector and Delta Lake: fetched once from Maven Central, then loaded from the user's cache.

The first session lets Spark resolve the coordinates with a resolver of our own: an Ivy directory that nothing
else uses and Maven Central alone, never ``~/.m2``, where a file that another tool left half-written would be
taken for whole. What came is listed with sizes; later sessions load those jars with no look-up and no
network. Processes that fetch at the same time wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from topics.jars import cache_directory
from topics.private import check_code

SCALA_VERSION = "2.13"
KAFKA = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA_VERSION}:{pyspark.__version__}"
DELTA_VERSION = "4.0.0"
DELTA = f"io.delta:delta-spark_{SCALA_VERSION}:{DELTA_VERSION}"
CLASSES = {
    KAFKA: "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    DELTA: "io.delta.sql.DeltaSparkSessionExtension",
}
"""What a session needs on its class path, by coordinate."""
DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

S3_CONF = {
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
}
"""``s3://``, as every other reader has it, is ``s3a://``; the classes come by a package, if at all."""

_RESOLVER = """\
<ivysettings>
  <settings defaultResolver="chain"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers>
    <chain name="chain">
      <ibiblio name="central" m2compatible="true"/>
    </chain>
  </resolvers>
</ivysettings>
"""


@dataclass(frozen=True, slots=True)
class Extras:
    """Packages beside ours, and repositories to ask for all of them."""

    packages: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()

    @property
    def coordinates(self) -> list[str]:
        """Ours and these."""
        return [*CLASSES, *self.packages]


def directory(cache: Path | None = None, extras: Extras = Extras()) -> Path:
    """Where the packages for this PySpark are kept; each choice of extras is a set of its own."""
    name = f"{pyspark.__version__}-delta-{DELTA_VERSION}"
    if extras.packages:
        name += "-" + hashlib.sha256("\n".join(sorted(extras.packages)).encode()).hexdigest()[:12]
    return (cache or cache_directory()) / "spark" / name


@contextmanager
def class_path_settings(cache: Path | None = None, extras: Extras = Extras()) -> Iterator[dict[str, str]]:
    """Spark settings that load the packages, for the time in which the session starts.

    Raises OSError where the cache directory cannot be written.
    """
    root = directory(cache, extras)
    if root.is_dir():
        check_code(root)
    jars = _listed(root)
    if jars is not None:
        yield {"spark.jars": ",".join(str(jar) for jar in jars)}
        return
    root.mkdir(parents=True, exist_ok=True)
    with (root / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        jars = _listed(root)
        if jars is not None:  # another process fetched them meanwhile
            yield {"spark.jars": ",".join(str(jar) for jar in jars)}
            return
        resolver = root / "ivysettings.xml"
        resolver.write_text(_RESOLVER.format(cache=root / "cache"), encoding="utf-8")
        asked = {"spark.jars.repositories": ",".join(extras.repositories)} if extras.repositories else {}
        yield {
            **asked,
            "spark.jars.packages": ",".join(extras.coordinates),
            "spark.jars.ivy": str(root),
            "spark.jars.ivySettings": str(resolver),
        }
        found = {
            str(jar.relative_to(root)): jar.stat().st_size for jar in sorted((root / "jars").glob("*.jar"))
        }
        fresh = root / "jars.json.new"
        fresh.write_text(json.dumps(found, indent=1), encoding="utf-8")
        fresh.replace(root / "jars.json")


def missing(cache: Path | None = None, extras: Extras = Extras()) -> list[str]:
    """The coordinates whose own jars are not in the directory, listed or not."""
    jars = directory(cache, extras) / "jars"
    return [
        coordinate
        for coordinate in extras.coordinates
        if not any(jars.glob(f"*{coordinate.split(':')[1]}*.jar"))
    ]


def _listed(root: Path) -> list[Path] | None:
    """The jars of a finished fetch, None when one is missing or not of its size any more."""
    try:
        sizes: dict[str, int] = json.loads((root / "jars.json").read_text(encoding="utf-8"))
        jars = [root / name for name in sizes]
        whole = all(jar.stat().st_size == size for jar, size in zip(jars, sizes.values(), strict=True))
    except (OSError, ValueError):
        return None
    return jars if whole and jars else None
