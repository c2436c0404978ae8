"""Sample keys: a hash of where a row comes from, by which SAMPLE keeps it or not.

Rows of a partition are numbered as the generator splitmix64 numbers what it draws (Steele, Lea and Flood,
OOPSLA 2014): its state steps by GAMMA an offset, from a start that the seed and the partition give, and
``mixed`` makes 64 bits of it that are as good as random. The upper 63 are the key. All arithmetic is modulo
2^64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@step
def mixed(z: np.uint64) -> np.uint64:
    """64 bits that are as good as random, of 64 bits; no two give the same."""
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@kernel
def seeded_keys(seed: np.uint64, keys: Int64Array, out: Int64Array) -> None:
    """out[i] = the key, 0 <= key < 2^63, that a seed makes of the key keys[i], which is not negative."""
    for i in range(keys.shape[0]):
        out[i] = np.int64(mixed(seed + GAMMA * (np.uint64(keys[i]) + np.uint64(1))) >> np.uint64(1))


@kernel
def chained_keys(keys: Int64Array, words: Int64Array) -> None:
    """keys[i] becomes the key that it makes, as a seed, of the word words[i]."""
    for i in range(keys.shape[0]):
        start = np.uint64(keys[i])
        keys[i] = np.int64(mixed(start + GAMMA * (np.uint64(words[i]) + np.uint64(1))) >> np.uint64(1))


@kernel
def sample_keys(seed: np.uint64, partition: Int32Array, offset: Int64Array, out: Int64Array) -> None:
    """out[i] = the key, 0 <= key < 2^63, of the row at (partition[i], offset[i])."""
    last, start = np.int32(-1), np.uint64(0)
    for i in range(offset.shape[0]):
        if i == 0 or partition[i] != last:
            last = partition[i]
            start = mixed(seed + GAMMA * (np.uint64(last) + np.uint64(1)))
        out[i] = np.int64(mixed(start + GAMMA * (np.uint64(offset[i]) + np.uint64(1))) >> np.uint64(1))
