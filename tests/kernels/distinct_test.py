"""Duplicate elimination over rows with exits that are known, against the values that are there."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import distinct
from engine.kernels.distinct import FOREVER, GIVEN, LATEST, NONE, TOLD, UNLISTED, WORDS, EmittedRows
from tests.changes.ways import seeds

CELLS = 4
Life = tuple[int, int, int]
"""Cell, entry, exit."""


def _there(rows: list[Life], cell: int, instant: int) -> bool:
    return any(of == cell and begin <= instant < end for of, begin, end in rows)


@given(seeds, st.booleans())
def test_a_value_is_given_while_one_of_its_rows_is_there(seed: int, exits_known: bool) -> None:
    rng = random.Random(seed)
    state = np.full((CELLS, WORDS), NONE)
    state[:, TOLD] = UNLISTED
    rows: list[Life] = []
    given_rows: list[Life] = []
    """Those that are given, with their exits; of told ones, FOREVER until it is told."""
    listed, now = np.empty(0, np.int32), 0
    for _ in range(rng.randint(1, 6)):
        until = now + rng.randint(1, 6)
        came = sorted(
            (at, at + rng.randint(1, 8), rng.randrange(CELLS))
            for at in (rng.randint(now + 1, until) for _ in range(rng.randint(0, 5)))
        )
        cells = np.array([cell for _, _, cell in came], np.int32)
        begins = np.array([begin for begin, _, _ in came], np.int64)
        ends = np.array([end for _, end, _ in came], np.int64)
        room = 3 * len(came) + len(listed) + 1
        given = EmittedRows(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64))
        new = np.empty(len(came), np.int32)
        leaving = listed[state[listed, GIVEN] <= until]
        n_new, count = distinct.arrive(
            np.arange(len(came) + 1), cells, begins, ends, state, exits_known, new, given
        )
        due = np.concatenate([leaving, new[:n_new]])
        stay, count = distinct.expire(due, until, state, exits_known, given, count)
        listed = np.concatenate([np.setdiff1d(listed, leaving), due[:stay]]).astype(np.int32)
        rows += [(cell, begin, end) for begin, end, cell in came]
        told = list(zip(*(each[:count].tolist() for each in given), strict=True))
        for cell, begin, end in told:
            if begin == NONE:  # it was given before, and leaves
                place = next(n for n, each in enumerate(given_rows) if each[::2] == (cell, FOREVER))
                given_rows[place] = cell, given_rows[place][1], end
            else:
                assert now < begin <= until
                given_rows.append((cell, begin, end))
        for cell in range(CELLS):
            for instant in range(now + 1, until + 1):
                there = sum(of == cell and begin <= instant < end for of, begin, end in given_rows)
                assert there == _there(rows, cell, instant), (cell, instant)
            ends_at = sorted(each[2] for each in given_rows if each[0] == cell)
            begins_at = sorted(each[1] for each in given_rows if each[0] == cell)
            if not exits_known:  # no value leaves while it enters
                assert not set(ends_at) & set(begins_at)
            live = [end for of, _, end in rows if of == cell and end > until]
            assert (state[cell, TOLD] == UNLISTED) == (not live)
            if live:
                assert max(state[cell, GIVEN], state[cell, LATEST]) == max(live)
        assert sorted(listed.tolist()) == [n for n in range(CELLS) if state[n, TOLD] != UNLISTED]
        now = until


def test_rows_that_were_there_before_all_instants_arrive() -> None:
    state = np.full((1, WORDS), NONE)
    state[:, TOLD] = UNLISTED
    given = EmittedRows(np.empty(4, np.int32), np.empty(4, np.int64), np.empty(4, np.int64))
    cells, never = np.zeros(2, np.int32), np.full(2, NONE)
    for exits_known in (True, False):
        state[:, TOLD] = UNLISTED
        distinct.arrive(
            np.arange(3), cells, never, np.array([9, 7]), state, exits_known, np.empty(2, np.int32), given
        )
        assert state[0, GIVEN] == 9
