"""The decorator that kernels share: compiled at first call, cached, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile an array function."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))


def borrowing(function: Kernel) -> Kernel:
    """Compile an array function that makes no arrays and returns none. Whoever calls it holds those that it
    is given, so references to them are not counted inside.
    """
    uncounted: Any = numba.njit
    return cast("Kernel", uncounted(cache=True, nogil=True, _nrt=False)(function))


def inlined(function: Kernel) -> Kernel:
    """As :func:`borrowing`, a part of whoever calls it: arrays cost some ns each to hand over."""
    uncounted: Any = numba.njit
    return cast("Kernel", uncounted(cache=True, nogil=True, _nrt=False, forceinline=True)(function))
