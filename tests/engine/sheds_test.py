"""Levels of rows in runs, against a search through all; runs are forgotten once their rows are gone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.shed import LEVEL_MAX, NOT_SHED, Shed, ShedPiece, ShedRun, Sheds
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


def test_of_a_run_that_the_window_begins_in_what_lies_within_it_counts() -> None:
    sheds = Sheds()
    for step in range(300):
        times = 100 * step, 100 * step + 99
        sheds.note(shed(10 * step, 10 * step + 10), Position(1, step + 1), times[1], 10, -1, times)
    (run,) = sheds.runs
    assert len(run.pieces) <= 64
    sheds._check()
    assert sheds.within(5, 15_000) == (Position(1, 1), 1_500, 0, ((15_000, 29_999),))
    assert sheds.within(5, 29_950) == (Position(1, 1), 5, 0, ((29_950, 29_999),))
    assert sheds.within(5, None) == (Position(1, 1), 3_000, 0, ((0, 29_999),))
    assert sheds.within(5, 30_000) is None


def test_runs_of_earlier_stores_count_whole() -> None:
    run = ShedRun(Position(1, 1), 500, 5, {0: (0, 10)}, 10)
    assert run.records_since(400) == (10, 0)
    more = run.continued(shed(10, 14), 600, 4, ShedPiece(501, 600, 4, 0))
    assert more is not None
    assert more.records_since(551) == (12, 0)
    assert more.records_since(601) == (0, 0)


def test_what_is_lacking_counts_runs_at_or_below_the_level_and_within_reach() -> None:
    sheds = Sheds()
    sheds.note(shed(0, 10, level=5), Position(1, 1), 100, 10, -1)
    sheds.note(Shed(7, {0: (20, 50)}, unread=29), Position(1, 2), 200, 1, -1)
    assert sheds.within(4, None) is None
    assert sheds.within(5, None) == (Position(1, 1), 10, 0, ())
    assert sheds.within(7, None) == (Position(1, 1), 11, 29, ())
    assert sheds.within(7, 101) == (Position(1, 2), 1, 29, ())
    assert sheds.within(7, 201) is None
