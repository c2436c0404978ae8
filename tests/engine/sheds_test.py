"""Levels of rows in runs, against a search through all; runs are forgotten once their rows are gone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.shed import LEVEL_MAX, NOT_SHED, Shed, Sheds
from engine.model.step import Position

STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 2), st.integers(1, 4), min_size=1),
        st.sampled_from([None, None, 1, 100_000, LEVEL_MAX]),
    ),
    max_size=12,
)


@given(steps=STEPS)
def test_level_of_a_row_is_that_of_its_run(steps: list[tuple[dict[int, int], int | None]]) -> None:
    sheds, levels, read = Sheds(), {}, dict.fromkeys(range(3), 0)
    for number, (counts, level) in enumerate(steps, start=1):
        ranges = {partition: (read[partition], read[partition] + n) for partition, n in counts.items()}
        if level is not None:
            sheds.note(Shed(level, ranges), Position(1, number), 10 * number, sum(counts.values()), -1)
        for partition, (first, until) in ranges.items():
            read[partition] = until
            levels |= {(partition, offset): level or NOT_SHED for offset in range(first, until)}
    rows = [(partition, offset) for partition in range(3) for offset in range(read[partition] + 2)]
    partition = np.array([one for one, _ in rows], np.int32)
    offset = np.array([one for _, one in rows], np.int64)
    assert sheds.levels(partition, offset).tolist() == [levels.get(row, NOT_SHED) for row in rows]
    assert sheds.records == sum(level != NOT_SHED for level in levels.values())
    sheds._check()
    again = Sheds(sheds.runs)
    assert again.levels(partition, offset).tolist() == sheds.levels(partition, offset).tolist()


def shed(first: int, until: int, level: int = 5) -> Shed:
    return Shed(level, {0: (first, until)})


def test_steps_that_follow_each_other_at_one_level_are_one_run() -> None:
    sheds = Sheds()
    assert sheds.note(shed(0, 10), Position(1, 1), 100, 10, -1)
    assert not sheds.note(shed(10, 20), Position(1, 2), 200, 10, -1)
    assert sheds.note(shed(20, 30, level=6), Position(1, 3), 300, 10, -1)
    assert sheds.note(shed(40, 50, level=6), Position(1, 4), 400, 10, -1)
    assert [run.since.sequence for run in sheds.runs] == [1, 3, 4]


def test_runs_go_with_the_second_that_begins_after_their_rows_went() -> None:
    sheds = Sheds()
    sheds.note(shed(0, 10), Position(1, 1), 100, 10, -1)
    sheds.note(shed(20, 30), Position(1, 2), 200, 10, 101)
    assert len(sheds.runs) == 2
    sheds.note(shed(40, 50), Position(1, 3), 300, 10, 101)
    assert [run.since.sequence for run in sheds.runs] == [2, 3]


def test_what_is_lacking_counts_runs_at_or_below_the_level_and_within_reach() -> None:
    sheds = Sheds()
    sheds.note(shed(0, 10, level=5), Position(1, 1), 100, 10, -1)
    sheds.note(Shed(7, {0: (20, 50)}, unread=29), Position(1, 2), 200, 1, -1)
    assert sheds.within(4, None) is None
    assert sheds.within(5, None) == (Position(1, 1), 10, 0)
    assert sheds.within(7, None) == (Position(1, 1), 11, 29)
    assert sheds.within(7, 101) == (Position(1, 2), 1, 29)
    assert sheds.within(7, 201) is None
