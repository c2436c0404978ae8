"""Bits of words: which one, how many."""

from __future__ import annotations

import numpy as np

from engine.kernels.compiled import kernel, step

_MULTIPLIER = 0x03F79D71B4CB0A89
_PLACES = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACES[((1 << _bit) * _MULTIPLIER & (2**64 - 1)) >> 58] = _bit


@kernel
def bit_of(power: np.uint64) -> int:
    """The place of the only bit that is set."""
    return _PLACES[(power * np.uint64(_MULTIPLIER)) >> np.uint64(58)]  # type: ignore[no-any-return]


@step
def ones(word: np.uint64) -> np.uint64:
    """How many bits are set."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
