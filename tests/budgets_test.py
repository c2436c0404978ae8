"""The table of seconds by folder in CONTRIBUTING.md, and what is printed beside it."""

from __future__ import annotations

from pathlib import Path

from tests.budgets import BESIDE, budgets, by_folder, lines

HERE = Path(__file__).parent


def test_each_folder_of_tests_has_a_budget() -> None:
    folders = {path.relative_to(HERE).parts[0] for path in HERE.rglob("*_test.py") if path.parent != HERE}
    assert budgets().keys() == folders | {BESIDE}


def test_seconds_are_summed_by_folder_and_told_beside_the_budget() -> None:
    parts = [
        ("tests/topics/codec_test.py::test_it", 1.0),
        ("tests/broker/joins_test.py::test_it[1]", 1_500.4),
        ("tests/broker/joins_test.py::test_it[2]", 0.2),
        ("tests/folders_test.py::test_it", 2.0),
    ]
    spent = by_folder(parts)
    assert list(spent) == ["broker", BESIDE, "topics"]
    assert lines(spent, {"broker": 1_000.0, "topics": 3.0, BESIDE: 9.0, "page": 7.0}) == [
        " seconds   budget  folder",
        "   1,501    1,000  broker  above its budget",
        "       2        9  files beside the folders",
        "       1        3  topics",
        "   1,504    1,012  all of these",
    ]
