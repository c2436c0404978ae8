"""Hashes of values, the same in every process and for every summary.

Equal numbers have one hash, whatever their type: a number that is a whole one of 64 bits is hashed as that
integer, any other by the bits of the double nearest to it. So -0.0 and 0 are one value. A string is hashed by
its bytes. ``mixed`` of splitmix64 makes the bits as good as random, from one fixed seed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel
from engine.kernels.sampling import mixed
from engine.kernels.strings import NO_SEED, ByteArray, HashArray, Int32Array, Int64Array, hash_of

Float64Array = npt.NDArray[np.float64]

SEED = np.uint64(0x5AD1A1C0DEC0FFEE)
TWO_63 = 9223372036854775808.0


@kernel
def integer_hashes(values: npt.NDArray[np.integer], out: HashArray) -> None:
    """Hashes of integers, of any width."""
    for i in range(values.shape[0]):
        out[i] = mixed(np.uint64(np.int64(values[i])) ^ SEED)


@kernel
def double_hashes(values: Float64Array, bits: Int64Array, out: HashArray) -> None:
    """Hashes of doubles. bits: the same memory as integers. NaN has some hash."""
    for i in range(values.shape[0]):
        value = values[i]
        if -TWO_63 <= value < TWO_63 and value == np.floor(value):
            out[i] = mixed(np.uint64(np.int64(value)) ^ SEED)
        else:
            out[i] = mixed(np.uint64(bits[i]) ^ SEED)


@kernel
def string_numbers(offsets: Int32Array, given: ByteArray, out: Int64Array) -> None:
    """A number of 63 bits for each string, of its bytes alone; it is hashed as integers are."""
    address = given.ctypes.data
    for i in range(out.shape[0]):
        number = hash_of(given, address, int(offsets[i]), int(offsets[i + 1]), NO_SEED)
        out[i] = np.int64(mixed(number ^ SEED) >> np.uint64(1))
