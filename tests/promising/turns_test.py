"""Groups share units by their weights, over any grants, and go on after a restart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.state_tree import as_tree, of_tree
from engine.promising.turns import QUANTUM, Turns, TurnsState


@dataclass
class Work:
    """A group with so many rows to visit; ``log`` has who visited what."""

    number: int
    weight: float
    rows: int
    log: list[tuple[int, int]]

    @property
    def left(self) -> bool:
        return self.rows > 0

    def spend(self, units: int) -> int:
        spent = min(units, self.rows)
        self.rows -= spent
        self.log.append((self.number, spent))
        return spent


def works(*weights_and_rows: tuple[float, int]) -> tuple[dict[int, Work], list[tuple[int, int]]]:
    log: list[tuple[int, int]] = []
    made = {3 * place + 1: Work(place, *each, log) for place, each in enumerate(weights_and_rows)}
    return made, log


def visits(log: list[tuple[int, int]]) -> list[int]:
    """Whose each visited row was, one after another."""
    return list(chain.from_iterable([number] * spent for number, spent in log))


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 1.0, 2.5]), st.integers(0, 60)), min_size=1, max_size=4),
    st.lists(st.integers(0, 30), max_size=8),
    st.booleans(),
)
def test_neither_cuts_nor_restarts_change_whose_row_is_next(drawn, cuts, restarts):
    whole, log = works(*drawn)
    Turns(8).spend(sum(cuts), whole)
    parts, pieces = works(*drawn)
    turns = Turns(8)
    for units in cuts:
        used = turns.spend(units, parts)
        assert sum(used.values()) == units or not any(each.left for each in parts.values())
        if restarts:
            state = of_tree(TurnsState, as_tree(turns.state()))
            turns = Turns(8)
            turns.restore(state)
    assert visits(pieces) == visits(log)


def test_units_are_in_the_ratio_of_weights():
    groups, _ = works((1.0, 10_000), (2.0, 10_000), (0.5, 10_000), (4.0, 0))
    turns = Turns(64)
    used = [turns.spend(units, groups) for units in (100, 348, 448)]
    assert [sum(each[number] for each in used) for number in groups] == [256, 512, 128, 0]


def test_a_group_with_nothing_left_saves_nothing():
    groups, log = works((1.0, 10), (1.0, 1_000))
    turns = Turns(64)
    turns.spend(200, groups)
    assert turns.state().deficits[1] == 0.0
    groups[1].rows = 100
    log.clear()
    turns.spend(300, groups)
    assert [spent for number, spent in log if number == 0] == [64, 36]


@pytest.mark.parametrize("gone", [1, 4, 7])
def test_turns_go_on_when_a_group_goes_and_another_comes(gone):
    groups, log = works((1.0, 10_000), (1.0, 10_000), (1.0, 10_000))
    turns = Turns(64)
    turns.spend(130, groups)
    del groups[gone]
    log.clear()
    groups[20] = Work(20, 1.0, 10_000, log)
    used = turns.spend(64 * 9 + 62, groups)
    assert set(used) == set(groups)
    assert min(used.values()) >= 64 * 3 - 2


def test_a_turn_of_the_lightest_group_is_a_block_of_rows():
    assert Turns().quantum == QUANTUM
    groups, log = works((3.0, 10 * QUANTUM), (1.0, 10 * QUANTUM))
    Turns().spend(5 * QUANTUM, groups)
    assert log == [(0, 3 * QUANTUM), (1, QUANTUM), (0, QUANTUM)]
