"""What rows that were seen say of those to come, against the definitions of the constraints."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.dataflow.releases.facts import LowBound, OpenKeys
from engine.model.batch import Column
from engine.model.types import BIGINT

VALUES = st.lists(st.one_of(st.none(), st.integers(-3, 6)), max_size=60)
CUTS = st.lists(st.integers(0, 60), max_size=6)


def column(values: list[int | None]) -> Column:
    valid = np.array([value is not None for value in values], np.bool_)
    return Column(BIGINT, np.array([value or 0 for value in values], np.int64), valid)


def pieces(values: list[int | None], cuts: list[int]) -> list[tuple[int, list[int | None]]]:
    ends = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    return [(first, values[first:last]) for first, last in pairwise(ends)]


@given(VALUES, CUTS, st.integers(0, 4))
def test_keys_are_over_when_more_than_k_rows_with_others_came_since_the_first(
    values: list[int | None], cuts: list[int], within: int
) -> None:
    keys = Keys([BIGINT])
    opened, over = OpenKeys(keys, within), list[int]()
    open_now: dict[int, int] = {}
    for first, piece in pieces(values, cuts):
        rows = column(piece)
        opened.read(KeyValues([rows], rows.there()), first)
        for place, value in enumerate(piece, first):
            if value is not None:
                open_now.setdefault(value, place)
        end = first + len(piece)
        due = {
            value
            for value, place in open_now.items()
            if sum(other != value for other in values[place:end]) > within
        }
        numbers = opened.over(end)
        over = keys.columns(numbers)[0].values.tolist()
        assert sorted(over) == sorted(due)
        for value in due:
            del open_now[value]
        keys.give_back(numbers)
        opened._check()
        assert len(opened) == len(open_now) == len(keys)


def test_rows_that_could_not_be_read_count_for_no_key() -> None:
    keys = Keys([BIGINT])
    opened = OpenKeys(keys, 2)
    rows = column([7])
    opened.read(KeyValues([rows], rows.there()), 0)
    opened.passed(10)  # rows 1 to 9 may be of key 7
    assert not len(opened.over(12))
    assert len(opened.over(13)) == 1


@given(VALUES, CUTS, st.integers(0, 4))
def test_the_low_bound_is_the_greatest_of_all_but_the_last_k(
    values: list[int | None], cuts: list[int], within: int
) -> None:
    bound = LowBound(within)
    for first, piece in pieces(values, cuts):
        bound.read(column(piece))
        seen = values[: first + len(piece)]
        known = [value for value in seen[: max(0, len(seen) - within)] if value is not None]
        assert bound.value == max(known, default=None)
