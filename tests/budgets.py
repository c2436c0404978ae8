"""How long the tests of each folder take, beside what they may: the table of CONTRIBUTING.md.

``make test`` prints it at its end. No test fails for being slow: who adds a slow one takes it from another.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BESIDE = "files beside the folders"
"""What the table calls the tests that stand in no folder."""


def folder_of(nodeid: str) -> str:
    """The folder of a test, by its id: ``tests/broker/joins_test.py::test_it`` is of ``broker``."""
    path = nodeid.partition("::")[0].removeprefix("tests/")
    folder, slash, _ = path.partition("/")
    return folder if slash else BESIDE


def budgets() -> dict[str, float]:
    """folder -> seconds that its tests may take, from the table of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(rf"^\| (`[\w/]+`|{BESIDE}) \| ([\d,]+) \|$", text, re.MULTILINE)
    return {folder.strip("`"): float(seconds.replace(",", "")) for folder, seconds in rows}


def by_folder(durations: Iterable[tuple[str, float]]) -> dict[str, float]:
    """folder -> seconds of its tests, the longest first. durations: pairs (id, seconds) of parts of tests."""
    spent: defaultdict[str, float] = defaultdict(float)
    for nodeid, seconds in durations:
        spent[folder_of(nodeid)] += seconds
    return dict(sorted(spent.items(), key=lambda one: -one[1]))


def lines(spent: Mapping[str, float], allowed: Mapping[str, float]) -> list[str]:
    """A line a folder: seconds, budget, and whether it is above."""
    told = [f"{'seconds':>8} {'budget':>8}  folder"]
    for folder, seconds in spent.items():
        budget = allowed.get(folder, 0.0)
        told.append(f"{seconds:8,.0f} {budget:8,.0f}  {folder}{'  above its budget' * (seconds > budget)}")
    total, most = sum(spent.values()), sum(allowed.get(folder, 0.0) for folder in spent)
    return [*told, f"{total:8,.0f} {most:8,.0f}  all of these"]


def time_limit(config: pytest.Config, usual_s: float) -> float:
    """The seconds that a test may take: what is usual, or what the command says where that is more."""
    return max(usual_s, float(config.getoption("timeout") or 0))
