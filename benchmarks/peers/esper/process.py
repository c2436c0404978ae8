"""Runs a harness in Java, here `Harness.java` on rows and queries: Esper in a process of its own, one runtime
for each call.

A query is deployed in the form that Esper indexes best, a filter of ranges in the stream itself, `psoup(a in
[lo:hi), b in [lo:hi))`, its constants as parameters: texts that name the same columns are compiled once.
(Written with comparisons, in the filter or in WHERE, the same queries run three times slower, and compiled
one by one they deploy four times slower.) Every match is handed to the listener of its query, which counts.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks.peers.esper.jars import esper_jars
from benchmarks.peers.missing import PeerMissing
from benchmarks.psoup import COLUMNS, Bounds
from topics.java import find_java
from tureen.errors import EmbeddedKafkaError

HARNESS = Path(__file__).with_name("Harness.java")
PASSES = 3
HEAP = "4g"


@dataclass(frozen=True, slots=True)
class EsperRun:
    """counts: int64[queries], matches of the first `rows` rows; heap_bytes: of the deployed queries."""

    rows: int
    pass_s: float
    deploy_s: float
    heap_bytes: float
    counts: npt.NDArray[np.int64]

    @property
    def rows_per_s(self) -> float:
        """Rows a second in the middle pass."""
        return self.rows / self.pass_s


class Esper:
    """A harness that is compiled and ready. Raises PeerMissing where Java or the jars are missing."""

    def __init__(self, harness: Path = HARNESS) -> None:
        try:
            self._java = str(find_java().path)
        except EmbeddedKafkaError as error:
            raise PeerMissing(str(error)) from error
        jars, compiler = esper_jars()
        self._directory = tempfile.TemporaryDirectory(prefix="tureen-esper-")
        self._class_path = os.pathsep.join(map(str, jars))
        command = [self._java, "-jar", str(compiler), "-17", "-proc:none", "-d", self._directory.name]
        self._call([*command, "-cp", self._class_path, str(harness)])
        self._main = harness.stem

    def close(self) -> None:
        """Remove what was compiled."""
        self._directory.cleanup()

    def run(self, values: npt.NDArray[np.int32], bounds: Bounds, seconds: float) -> EsperRun:
        """Deploy the queries, warm up for `seconds`, send the first rows in passes of about as long.

        values: int32[4, rows]; bounds: int64[queries, 4, 2].
        """
        with tempfile.TemporaryDirectory(prefix="tureen-esper-") as name:
            directory = Path(name)
            values.astype("<i4").tofile(directory / "rows")
            (directory / "queries").write_text("\n".join(map(epl, bounds)) + "\n", encoding="ascii")
            facts = self.start(name, str(seconds), str(PASSES))
            counts = np.fromfile(directory / "counts", ">i8").astype(np.int64)
        return EsperRun(
            int(facts["rows"][0]),
            median(facts["pass_s"]),
            facts["deploy_s"][0],
            facts["heap_bytes"][0],
            counts,
        )

    def start(self, *arguments: str) -> dict[str, list[float]]:
        """Run the harness to its end; the values that it printed, by key."""
        class_path = os.pathsep.join([self._directory.name, self._class_path])
        command = [self._java, f"-Xmx{HEAP}", "-XX:+UseSerialGC", "-cp", class_path, self._main]
        facts: dict[str, list[float]] = {}
        for line in self._call([*command, *arguments]).splitlines():
            key, _, value = line.partition(" ")
            facts.setdefault(key, []).append(float(value))
        return facts

    def _call(self, command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PeerMissing(f"Esper's harness ended with {done.returncode}: {done.stderr[-2_000:]}")
        return done.stdout


def epl(bounds: Bounds) -> str:
    """A query as the harness reads it: EPL with parameters, and their values behind tabs."""
    ranged = [
        (name, lo, hi)
        for name, (lo, hi) in zip(COLUMNS, bounds.tolist(), strict=True)
        if (lo, hi) != (0, 256)
    ]
    filters = ", ".join(f"{name} in [?::int:?::int)" for name, _, _ in ranged)
    values = "".join(f"\t{lo}\t{hi}" for _, lo, hi in ranged)
    return f"select * from psoup({filters}){values}" if ranged else "select * from psoup"
