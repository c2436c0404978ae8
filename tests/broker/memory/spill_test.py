"""When rows leave memory: above a share of the budget, as much as is too much, while the disk has room."""

from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np
import pytest

from broker.memory import spill as policy
from broker.memory.budget import ROWS_SHARE
from broker.memory.held import LOOK_S, HeldMemory
from broker.memory.spill import RETRY_S, Spill
from storage.spill_files import PAGE, SpillFiles
from tureen.errors import MIB

BUDGET = 100 * MIB


class World:
    """A clock, what the process holds, and a spill that looks at both."""

    def __init__(self, directory: Path, bytes_max: int = 1 << 40) -> None:
        self.held = 0
        self.now_s = 0.0
        self.files = SpillFiles(directory)
        held = HeldMemory(lambda: self.held, lambda: self.now_s)
        self.spill = Spill(self.files, BUDGET, bytes_max, held)

    def wanted_at(self, held: int) -> int:
        """After the next look."""
        self.held = held
        self.now_s += RETRY_S
        return self.spill.wanted()


def test_what_is_too_much_is_wanted_and_no_more_until_the_next_look(tmp_path: Path) -> None:
    world = World(tmp_path)
    begins = int(ROWS_SHARE * BUDGET)
    assert world.wanted_at(begins) == 0
    assert world.wanted_at(begins + 3 * MIB) == 3 * MIB
    assert world.spill.write([np.zeros(2 * MIB, np.uint8)]) is not None
    assert world.spill.wanted() == MIB  # what is held by the kernel's word lags behind
    assert world.spill.write([np.zeros(2 * MIB, np.uint8)]) is not None
    assert world.spill.wanted() == 0
    world.now_s += LOOK_S
    assert world.spill.wanted() == 3 * MIB


def test_where_the_disk_may_take_no_more_rows_stay_and_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, bytes_max=3 * PAGE)
    assert world.wanted_at(BUDGET) > 0
    kept = world.spill.write([np.zeros(2 * PAGE, np.uint8)])
    assert kept is not None
    assert world.spill.write([np.zeros(2 * PAGE, np.uint8)]) is None
    facts = world.spill.facts()
    assert (facts["spilled_bytes"], facts["spilled_bytes_max"]) == (2 * PAGE, 3 * PAGE)
    assert "TUREEN_SPILL_BYTES_MAX" in facts["spilled_refused"]["hint"]
    world.now_s += RETRY_S - 1
    assert world.spill.wanted() == 0
    world.now_s += 1
    assert world.spill.wanted() > 0
    del kept
    assert world.spill.write([np.zeros(2 * PAGE, np.uint8)]) is not None
    assert world.spill.facts()["spilled_refused"] is None
    monkeypatch.setattr(policy, "SPARE_BYTES", 1 << 60)
    assert world.wanted_at(BUDGET) > 0
    assert world.spill.write([np.zeros(1, np.uint8)]) is None
    assert "disk" in world.spill.facts()["spilled_refused"]["message"]


def test_a_directory_that_cannot_be_made_is_no_defect(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    world = World(tmp_path / "file" / "spill")
    assert world.wanted_at(BUDGET) > 0
    rows = np.zeros(PAGE, np.uint8)
    known = weakref.ref(rows)
    assert world.spill.write([rows]) is None
    assert "cannot be written" in world.spill.facts()["spilled_refused"]["message"]
    del rows
    assert known() is None  # what is told of the refusal keeps nothing


def test_without_disk_nothing_leaves_memory(tmp_path: Path) -> None:
    assert World(tmp_path, bytes_max=0).wanted_at(BUDGET) == 0
