"""A standalone Spark cluster on this machine: master and worker from PySpark's own jars, loopback only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from spark_jobs.session import find_java
from tests.kafka import free_ports, wait_until

HERE = "127.0.0.1"
START_S = 240
MEMORY = "1g"
CORES = 2
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@dataclass(frozen=True, slots=True)
class Cluster:
    """``master``: its URL. The worker has two cores, and memory for two executors."""

    master: str
    worker: int

    def executors(self) -> list[psutil.Process]:
        """The JVMs that run tasks at this moment."""
        found = []
        for process in psutil.Process(self.worker).children(recursive=True):
            with suppress(psutil.Error):
                if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                    found.append(process)
        return found


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A running one; ends with all it started."""
    [port] = free_ports(1)
    url = f"spark://{HERE}:{port}"
    java = str(find_java().path.resolve().parent.parent)
    # What a worker has on a machine of its own: nothing of this virtual environment.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "JAVA_HOME": java, "SPARK_LOCAL_IP": HERE}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            node = subprocess.Popen(
                [str(SPARK_CLASS), f"org.apache.spark.deploy.{name.lower()}.{name}", *arguments],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(node)
        return node

    def alive() -> bool:
        for node in started:
            assert node.poll() is None, "".join(log.read_text()[-2_000:] for log in folder.glob("*.log"))
        return True

    def listens() -> bool:
        with socket.socket() as tried:
            return alive() and tried.connect_ex((HERE, port)) == 0

    def registered() -> bool:
        return alive() and "Successfully registered" in (folder / "Worker.log").read_text()

    try:
        start("Master", "--host", HERE, "--port", str(port), "--webui-port", "0")
        wait_until(listens, START_S, "the master")
        worker = start(
            *("Worker", "--host", HERE, "--webui-port", "0", "-c", str(CORES), "-m", f"{CORES}g"),
            *("-d", str(folder / "work"), url),
        )
        wait_until(registered, START_S, "the worker")
        yield Cluster(url, worker.pid)
    finally:
        for node in reversed(started):
            descendants = psutil.Process(node.pid).children(recursive=True) if node.poll() is None else []
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            for one in descendants:  # executors have sessions of their own
                with suppress(psutil.Error):
                    one.kill()
            node.wait()
