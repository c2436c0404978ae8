"""Measured costs are kept for a day, for one machine and version; what is damaged is measured again."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.runtime.known_costs import KEPT_S, known_or_measured
from engine.model.maintenance import Costs, UnitCosts

MEASURED = Costs(1.5, 2.5, 3.5, 4.5, 5.5, 6.5, UnitCosts(touch_ns=7.25))


class Measuring:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Costs:
        self.times += 1
        return MEASURED


def test_they_are_measured_once(tmp_path: Path) -> None:
    path, measure = tmp_path / "costs.json", Measuring()
    assert [known_or_measured(path, measure) for _ in range(3)] == [MEASURED] * 3
    assert measure.times == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["costs.json"]


def test_whole_numbers_are_costs(tmp_path: Path) -> None:
    path, whole = tmp_path / "costs.json", replace(MEASURED, answer_ns=16_715)
    assert known_or_measured(path, lambda: whole) == whole
    assert known_or_measured(path, Measuring()) == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told["by"].update(tureen="0"),
        lambda told: told["by"].update(processors=0),
        lambda told: told.update(measured_s=told["measured_s"] - KEPT_S),
        lambda told: told.update(measured_s=told["measured_s"] + 3_600),
        lambda told: told["costs"].update(read_ns=-1.0),
        lambda told: told["costs"].update(read_ns=float("nan")),
        lambda told: told["costs"].update(read_ns="1"),
        lambda told: told["costs"].pop("units"),
        lambda told: told["costs"].update(more_ns=1.0),
        lambda told: told.clear(),
    ],
    ids=["version", "processors", "old", "future", "negative", "nan", "text", "no_units", "unknown", "empty"],
)
def test_others_are_measured_again(tmp_path: Path, change: Any) -> None:
    path, measure = tmp_path / "costs.json", Measuring()
    known_or_measured(path, measure)
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))
    assert known_or_measured(path, measure) == MEASURED
    assert measure.times == 2
    assert known_or_measured(path, measure) == MEASURED
    assert measure.times == 2


def test_a_file_that_is_none_or_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    measure = Measuring()
    (tmp_path / "costs.json").write_bytes(b"\xff{")
    assert known_or_measured(tmp_path / "costs.json", measure) == MEASURED
    assert known_or_measured(tmp_path / "nowhere" / "costs.json", measure) == MEASURED
    assert measure.times == 2
