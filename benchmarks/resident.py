"""Memory: what of this process is resident, and what an object holds."""

import gc
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import psutil

SHARED = (type, ModuleType, FunctionType)


def resident_bytes() -> int:
    """Memory of this process alone, after Python's collector has run (USS; RSS where there is none)."""
    gc.collect()
    facts = psutil.Process().memory_full_info()
    return int(getattr(facts, "uss", facts.rss))


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of Python's objects and of arrays; of these apart: bits, the words of uint64 arrays."""

    plain: int
    bits: int


def held_by(root: Any, besides: Iterable[Any] = ()) -> Held:
    """Everything that can be reached from an object, once each; but for `besides`, classes and functions.

    An engine's only uint64 arrays are words of bits. O(objects), some microseconds each.
    """
    seen = {id(one) for one in besides}
    seen.add(id(root))
    queue = deque([root])
    plain = bits = 0
    while queue:
        held = queue.popleft()
        if not isinstance(held, np.ndarray):
            plain += sys.getsizeof(held)
            reached = gc.get_referents(held)
        elif isinstance(held.base, np.ndarray):
            reached = [held.base]
        else:
            reached = []
            if held.dtype == np.uint64:
                bits += held.nbytes
            elif held.dtype == object:
                plain += held.nbytes
                reached = list(held.flat)
            else:
                plain += held.nbytes
        for one in reached:
            if id(one) not in seen and not isinstance(one, SHARED):
                seen.add(id(one))
                queue.append(one)
    return Held(plain, bits)
