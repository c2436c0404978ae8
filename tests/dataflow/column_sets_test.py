"""Sets of columns: what rows have is what was put in, through whatever comes and goes over them."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.column_sets import ColumnSets
from engine.dataflow.columns import Over
from engine.dataflow.delta import Delta
from engine.model.capacities import SMALLEST
from engine.operators.relation import Relation

COLUMNS = 6


def delta_of(rows: list[set[int]], rng: random.Random) -> Delta:
    """Rows of these columns, in any order."""
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    owners = [column for row in rows for column in rng.sample(sorted(row), len(row))]
    zeros = np.zeros(len(rows), np.int64)
    temporal = TemporalRelation(Relation([], len(rows)), zeros, zeros)
    return Delta(temporal, starts, np.array(owners, np.int32))


def over_of(above: dict[int, int]) -> Over:
    return Over(np.array(list(above), np.int32), np.array(list(above.values()), np.int32))


@example(seed=10533127)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_have_the_columns_over_those_that_were_put_in(seed: int) -> None:
    rng = random.Random(seed)
    sets, above = ColumnSets(SMALLEST), {70: 0}
    numbers, expected = np.empty(0, np.int32), list[set[int]]()
    for _ in range(25):
        match rng.randrange(5):
            case 0:
                rows = [set(rng.sample(range(COLUMNS), rng.randint(0, 3))) for _ in range(rng.randint(0, 6))]
                numbers = np.concatenate([numbers, sets.of(delta_of(rows, rng))])
                expected += rows
            case 1 if expected:
                rows = [set(rng.sample(range(COLUMNS), rng.randint(0, 3))) for _ in expected]
                numbers = sets.union(numbers, sets.of(delta_of(rows, rng)))
                expected = [one | other for one, other in zip(expected, rows, strict=True)]
            case 2:
                column, below = rng.randrange(140), rng.randrange(COLUMNS)
                if column in above:
                    below = above.pop(column)
                else:
                    above[column] = below
                sets.changed(below)
            case 3:
                gone = [column for column in range(COLUMNS) if column not in above.values()]
                some = rng.sample(gone, rng.randint(0, len(gone)))
                sets.remove(np.array(sorted(some), np.int32))
                expected = [row - set(some) for row in expected]
            case _:
                kept = sorted(rng.sample(range(len(expected)), rng.randint(0, len(expected))))
                numbers, expected = numbers[kept], [expected[place] for place in kept]
                numbers = sets.only(numbers)[numbers]
        sets._check()
        if rng.random() < 0.7:
            runs = sets.runs(over_of(above))
            for number, row in zip(numbers.tolist(), expected, strict=True):
                here = range(runs.starts[number], runs.ends[number])
                found = [
                    64 * int(runs.words[place]) + bit
                    for place in here
                    for bit in range(64)
                    if int(runs.bits[place]) >> bit & 1
                ]
                assert found == sorted(column for column, below in above.items() if below in row)


def test_a_set_that_loses_a_column_as_the_last_reader_of_it_goes_is_read_by_nobody_over_it() -> None:
    sets, above = ColumnSets(), {70: 0, 71: 1}
    (number,) = sets.of(delta_of([{0, 1}], random.Random(0))).tolist()
    runs = sets.runs(over_of(above))
    assert int(runs.bits[runs.starts[number]]) == 0b11 << 70 % 64
    del above[70]
    sets.changed(0)
    sets.remove(np.array([0], np.int32))
    runs = sets.runs(over_of(above))
    assert int(runs.bits[runs.starts[number]]) == 0b10 << 70 % 64
