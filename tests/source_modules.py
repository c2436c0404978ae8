"""The modules of packages, for tests that read their source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("benchmarks", "broker", "engine", "spark_jobs", "storage", "topics", "tureen")


def modules(packages: Iterable[str]) -> dict[str, Path]:
    """The files of all modules of some packages, by dotted name."""
    found = {}
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found
