"""Whether a cluster is there and can run our jobs: told before a job begins, each in bounded time.

Spark itself tries a master that does not answer for a minute, waits for executors for ever, and tells of a
Python that lacks something by four failed tasks and a traceback. Costs nothing where the master is local,
else one small task for each core.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from importlib.metadata import version
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_jobs.errors import ExecutorsMissing, ExecutorsUnsuitable, MasterUnreachable
from spark_jobs.failures import root_text

REACH_S = 5.0
"""How long a connection to each master that is named may take."""
EXECUTORS_S = 600.0
"""How long a cluster may take to give the first executors: it may be busy with others."""
TASKS_MAX = 64
POLL_S = 0.2

NEEDED = (
    "spark_jobs",
    "engine",
    "topics",
    "storage",
    "tureen",
    "pyarrow",
    "numba",
    "confluent_kafka",
    "orjson",
)
"""What is imported on executors; each stands for what comes with it."""
INSTALL = (
    "the workers' Python needs Tureen: install it there and name it by "
    "--conf spark.pyspark.python=/path/of/python, or send a packed environment by --conf spark.archives"
)


def is_local(master: str) -> bool:
    """Whether executors are threads of the driver."""
    return master == "local" or master.startswith("local[")


def reach(master: str) -> None:
    """Raises MasterUnreachable: no standalone master listens where one is named. Others are not asked."""
    if not master.startswith("spark://"):
        return
    told = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
        except (OSError, ValueError, OverflowError) as error:
            told.append(f"{address}: {error}")
        else:
            return
    raise MasterUnreachable(
        master, "; ".join(told), hint="is it running? its log and its page on port 8080 show its address"
    )


def check_executors(session: SparkSession, waited_s: float = EXECUTORS_S) -> None:
    """Look at the Python of executors. waited_s: for the first of them.

    Raises ExecutorsMissing, ExecutorsUnsuitable, and whatever a signal raises meanwhile.
    """
    context = session.sparkContext
    if is_local(context.master or ""):
        return
    tasks = max(1, min(context.defaultParallelism, TASKS_MAX))
    probe = _probe(NEEDED)
    answers: Future[list[str]] = Future()

    def ask() -> None:
        try:
            answers.set_result(context.parallelize(range(tasks), tasks).map(probe).collect())
        except (Py4JError, PySparkException) as error:
            answers.set_exception(error)

    # In a thread of its own, so that this one can count the seconds and hear signals.
    threading.Thread(target=ask, name="executors", daemon=True).start()
    try:
        _wait(session, answers, waited_s)
    finally:
        if not answers.done():
            context.cancelAllJobs()
    try:
        found = answers.result()
    except (Py4JError, PySparkException) as error:
        raise ExecutorsUnsuitable(root_text(error), hint=INSTALL) from error
    for text in found:
        _require_suitable(json.loads(text))


def _wait(session: SparkSession, answers: Future[list[str]], waited_s: float) -> None:
    """Until there are answers. Raises ExecutorsMissing: no executor came in time to begin."""
    asked, came = threading.Event(), False
    answers.add_done_callback(lambda _: asked.set())
    polls = 0
    while not asked.wait(POLL_S):
        polls += 1
        came = came or _executors(session) > 0
        if not came and polls * POLL_S >= waited_s:
            context = session.sparkContext
            conf = context.getConf()
            wants = f"{conf.get('spark.executor.memory', '1g')} of memory"
            if conf.contains("spark.executor.cores"):
                wants += f" and {conf.get('spark.executor.cores')} cores"
            raise ExecutorsMissing(
                context.master or "the cluster",
                waited_s,
                hint=f"each asks for {wants}: is as much free on a worker, and can it reach this machine?",
            )


def _executors(session: SparkSession) -> int:
    """How many there are, without the driver."""
    jsc: Any = session._jsc
    return int(jsc.sc().getExecutorMemoryStatus().size()) - 1


def _require_suitable(found: dict[str, Any]) -> None:
    """Raises ExecutorsUnsuitable."""
    python = f"{found['python']} ({found['version']}) on {found['host']}"
    if found["missing"]:
        raise ExecutorsUnsuitable(f"{python} lacks {', '.join(found['missing'])}", hint=INSTALL)
    ours = version("tureen")
    if found["tureen"] not in (None, ours):
        raise ExecutorsUnsuitable(
            f"{python} has Tureen {found['tureen']}, and the driver has {ours}",
            hint="install the same version on both",
        )


def _probe(needed: tuple[str, ...]) -> Callable[[int], str]:
    """What a task tells of its Python. It goes there as code, not by name: nothing of ours need be there."""

    def told(_: int) -> str:
        import importlib.metadata
        import importlib.util
        import json
        import platform
        import sys

        try:
            tureen = importlib.metadata.version("tureen")
        except importlib.metadata.PackageNotFoundError:  # from a zip
            tureen = None
        return json.dumps(
            {
                "python": sys.executable,
                "version": platform.python_version(),
                "host": platform.node(),
                "missing": [name for name in needed if importlib.util.find_spec(name) is None],
                "tureen": tureen,
            }
        )

    return told
