"""Data and helpers that ``bitmaps_test.py`` shares with other tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

ALL = 2**64 - 1

seeds = st.integers(0, 2**32 - 1)


def words(rng: np.random.Generator, *shape: int, density: float = 0.5) -> np.ndarray:
    bits = rng.random((*shape, 64)) < density
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64).reshape(shape)
