"""Instants in halves agree with plain numbers."""

import numpy as np

from engine.kernels import halves


def test_halves_and_back() -> None:
    rng = np.random.default_rng(5)
    far = [-(2**63), -(2**63) + 1, -(2**62), -(2**61), 2**61, 2**62, 2**63 - 1]
    some = np.concatenate([np.array(far), np.array(far[2:-1]) + 1, rng.integers(-(2**40), 2**40, 50)])
    for half in (0, 1):
        out = np.empty(len(some), np.int64)
        halves.double(some, half, out)
        assert out.tolist() == [2 * at + half if abs(at) < 2**61 else at for at in some.tolist()]
    halves.halve(some, out)
    assert out.tolist() == [at >> 1 if abs(at) < 2**62 else at for at in some.tolist()]
