"""Patterns of bits are numbered as a plain dictionary numbers them."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels import patterns


def numbered(bits: np.ndarray, room: int) -> tuple[int, list[int], list[int]]:
    out, found = np.empty(len(bits), np.int32), np.empty(room, np.uint64)
    places = np.full(1 << (2 * room).bit_length(), -1, np.int32)
    count = patterns.number(bits, places, out, found)
    return count, out.tolist(), found[: max(0, count)].tolist()


@pytest.mark.parametrize("different", [1, 2, 7, 255, 256])
def test_numbers_are_in_the_order_of_first_appearance(different: int) -> None:
    rng = np.random.default_rng(different)
    some = rng.integers(0, 1 << 64, different, np.uint64, endpoint=False)
    some[0] = 0  # rows of nobody
    bits = np.repeat(rng.choice(some, 3_000), rng.integers(1, 4, 3_000))
    wanted: dict[int, int] = {}
    expected = [-1 if word == 0 else wanted.setdefault(word, len(wanted)) for word in bits.tolist()]
    assert numbered(bits, 256) == (len(wanted), expected, list(wanted))
    assert numbered(bits, max(1, len(wanted))) == (len(wanted), expected, list(wanted))
    if len(wanted) > 1:
        assert numbered(bits, len(wanted) - 1)[0] == -1


def test_no_rows_have_no_patterns() -> None:
    assert numbered(np.empty(0, np.uint64), 1) == (0, [], [])
