"""The decorators of kernels: compiled at first call, cached on disk, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile an array function. No fastmath: a kernel and its twin agree to the bit."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))


def step(function: Kernel) -> Kernel:
    """A step of kernels, made a part of each that calls it: where a call would cost as much as the step."""
    return cast("Kernel", numba.njit(inline="always")(function))
