"""The decorators of kernels: compiled at first call, cached on disk, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import IndexDataCacheFile

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile an array function. No fastmath: a kernel and its twin agree to the bit."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))


def step(function: Kernel) -> Kernel:
    """A step of kernels, made a part of each that calls it: where a call would cost as much as the step."""
    return cast("Kernel", numba.njit(inline="always")(function))


def _without_what_is_gone(load: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Load the index of kernels on disk. One that names a class that is there no more, as after an update, is
    of no use: numba looks whether it is out of date only when it is read.
    """

    def loaded(index: Any) -> Any:
        try:
            return load(index)
        except (AttributeError, ImportError):
            return {}

    return loaded


IndexDataCacheFile._load_index = _without_what_is_gone(  # type: ignore[method-assign]
    IndexDataCacheFile._load_index
)
