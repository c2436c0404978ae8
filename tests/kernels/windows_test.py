"""The window kernels agree with their rules told row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.windows import last_of_each, rows_of_hops, sessions

coded = st.lists(st.integers(0, 3), max_size=20)
instants = st.lists(st.integers(-50, 50), max_size=20).map(sorted)


@given(coded, st.integers(1, 4))
def test_last_of_each(codes: list[int], most: int) -> None:
    out = np.empty(len(codes), np.bool_)
    last_of_each(np.array(codes, np.int64), 4, most, out)
    expected = [codes[row + 1 :].count(code) < most for row, code in enumerate(codes)]
    assert out.tolist() == expected


@given(instants, st.integers(1, 30), st.integers(1, 12), st.integers(-70, 60), st.integers(0, 20))
def test_rows_of_hops(stamps: list[int], size: int, slide: int, first_end: int, windows: int) -> None:
    last_end = first_end + (windows - 1) * slide
    expected = [
        (row, end)
        for end in range(first_end, last_end + 1, slide)
        for row, stamp in enumerate(stamps)
        if end - size <= stamp < end
    ]
    given_stamps = np.array(stamps, np.int64)
    none = np.empty(0, np.int64)
    pairs = rows_of_hops(given_stamps, size, slide, first_end, last_end, none, none)
    assert pairs == len(expected)
    rows, ends = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    if pairs:
        assert rows_of_hops(given_stamps, size, slide, first_end, last_end, rows, ends) == pairs
    assert list(zip(rows.tolist(), ends.tolist(), strict=True)) == expected
    assert given_stamps.tolist() == stamps


def test_long_gaps_between_rows_are_stepped_over() -> None:
    stamps = np.array([-(2**45), 0, 2**45], np.int64)
    rows, ends = np.empty(3, np.int64), np.empty(3, np.int64)
    assert rows_of_hops(stamps, 1, 1, -(2**46), 2**46, rows, ends) == 3
    assert ends.tolist() == [-(2**45) + 1, 1, 2**45 + 1]


@given(instants, st.data(), st.integers(1, 20))
def test_sessions(stamps: list[int], data: st.DataObject, gap: int) -> None:
    n = len(stamps)
    codes = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    members: list[list[int]] = []
    for row, stamp in enumerate(stamps):
        for rows in reversed(members):
            if codes[rows[0]] == codes[row]:
                if stamp - stamps[rows[-1]] < gap:
                    rows.append(row)
                    break
                members.append([row])
                break
        else:
            members.append([row])
    of_row, first, last = (np.empty(n, np.int64) for _ in range(3))
    count = sessions(np.array(codes, np.int64), np.array(stamps, np.int64), 3, gap, of_row, first, last)
    assert count == len(members)
    assert of_row.tolist() == [place for row in range(n) for place, rows in enumerate(members) if row in rows]
    assert first[:count].tolist() == [stamps[rows[0]] for rows in members]
    assert last[:count].tolist() == [stamps[rows[-1]] for rows in members]
