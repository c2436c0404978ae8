"""Single bits of words."""

from __future__ import annotations

import numpy as np

from engine.kernels.compiled import kernel

_MULTIPLIER = 0x03F79D71B4CB0A89
_PLACES = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACES[((1 << _bit) * _MULTIPLIER & (2**64 - 1)) >> 58] = _bit


@kernel
def bit_of(power: np.uint64) -> int:
    """The place of the only bit that is set."""
    return _PLACES[(power * np.uint64(_MULTIPLIER)) >> np.uint64(58)]  # type: ignore[no-any-return]
