"""Groups share units by their weights, over any grants, and go on after a restart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.model.state_tree import as_tree, of_tree
from engine.promising.group import Member
from engine.promising.joins import PromisingJoin, join_key
from engine.promising.turns import QUANTUM, Turns, TurnsState
from tests.promising.streams import WIDTHS, Streams, join_query, rows_of

WEIGHTS = {"desc": 1.0, "asc": 2.0, "weighted": 0.5}


def groups_of(streams: Streams) -> list[PromisingJoin]:
    """A group for each order, with more to visit than is granted."""
    made = []
    for order, weight in WEIGHTS.items():
        query = join_query(order)
        group = PromisingJoin(join_key(query, WIDTHS), streams.summaries)
        group.add(Member(order, replace(query, weight=weight), weight), streams.at())
        made.append(group)
    rows = rows_of(list(range(1, 401)), [number % 7 for number in range(400)])
    streams.step({"a": rows, "b": rows}, 400)
    streams.step({"a": rows_of([401] * 400, [number % 5 for number in range(400)])}, 401)
    for group in made:
        group.arrive(streams.at(), 401)
    return made


def turns_of(groups: list[PromisingJoin]) -> Turns:
    turns = Turns(64)
    for group in groups:
        turns.add(group)
    return turns


def test_units_are_in_the_ratio_of_weights_whatever_the_grants():
    shares = []
    for cuts in ([896], [1] * 10 + [86, 800], [100] * 8 + [96]):
        streams = Streams(granularity_ms=1000)
        groups = groups_of(streams)
        turns = turns_of(groups)
        for units in cuts:
            assert turns.spend(units, streams.at()) == units
        shares.append([group.counts.spent for group in groups])
        assert all(group.left for group in groups)
    assert shares == [[256, 512, 128]] * 3


def test_a_group_with_nothing_left_gives_its_turn_to_others_and_saves_nothing():
    streams = Streams(granularity_ms=1000)
    groups = groups_of(streams)
    turns = turns_of(groups)
    first = groups[1]
    everything = sum(group.counts.short for group in groups)
    first.spend(1 << 30, streams.at())
    assert not first.left
    rest = everything - first.counts.spent
    assert turns.spend(1 << 30, streams.at()) == rest
    assert not turns.left
    assert turns.spend(5, streams.at()) == 0
    assert turns.state().deficits == (0.0, 0.0, 0.0)


def test_turns_go_on_after_a_restart_where_they_were():
    spent = []
    for restart in (False, True):
        streams = Streams(granularity_ms=1000)
        groups = groups_of(streams)
        turns = turns_of(groups)
        turns.spend(75, streams.at())
        if restart:
            state = of_tree(TurnsState, as_tree(turns.state()))
            turns = turns_of(groups)
            turns.restore(state)
        turns.spend(300, streams.at())
        spent.append([group.counts.spent for group in groups])
    assert spent[0] == spent[1]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_turns_go_on_when_a_group_goes(gone):
    streams = Streams(granularity_ms=1000)
    groups = groups_of(streams)
    turns = turns_of(groups)
    turns.spend(130, streams.at())
    turns.remove(groups[gone])
    left = [group for group in groups if group is not groups[gone]]
    assert list(turns) == left
    assert turns.spend(64 * 9, streams.at()) == 64 * 9
    assert all(group.counts.spent > 64 for group in left)


def test_a_turn_is_a_block_of_the_lightest_group():
    assert Turns().quantum == QUANTUM
