"""The decorators of kernels: compiled at first call, cached on disk, without the interpreter's lock."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import IndexDataCacheFile

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_IMPORTS = re.compile(r"^from engine\.kernels(?:\.(\w+) import| import (?:\(([^)]*)\)|(.*)))", re.MULTILINE)


def kernel(function: Kernel) -> Kernel:
    """Compile an array function. No fastmath: a kernel and its twin agree to the bit."""
    return _stamped(function, numba.njit(cache=True, nogil=True)(function))


def borrowing(function: Kernel) -> Kernel:
    """Compile a kernel that makes no arrays and returns none. Whoever calls it holds those that it is given,
    so references to them are not counted inside, which takes most of the time of a loop over arrays in named
    tuples.
    """
    uncounted: Any = numba.njit
    return _stamped(function, uncounted(cache=True, nogil=True, _nrt=False)(function))


def _stamped(function: Kernel, compiled: Any) -> Kernel:
    """A kernel that is out of date on disk when one beneath it has changed."""
    on_disk = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if on_disk is not None:
        on_disk._source_stamp = on_disk._source_stamp, *_beneath(function.__module__)
    return cast("Kernel", compiled)


def step(function: Kernel) -> Kernel:
    """A step of kernels, made a part of each that calls it: where a call would cost as much as the step."""
    return cast("Kernel", numba.njit(inline="always")(function))


@cache
def _beneath(module: str) -> tuple[str, ...]:
    """Digests of the sources of the modules of kernels that one imports, and of those that these import:
    steps, kernels and constants of theirs are a part of its compiled code, and numba looks at its own source
    alone.
    """
    found, ahead = set[str](), [module]
    while ahead:
        more = set(_imported(ahead.pop())) - found
        found |= more
        ahead.extend(more)
    found.discard(module)
    return tuple(_digest(name) for name in sorted(found))


def _imported(module: str) -> Iterator[str]:
    for one, several, line in _IMPORTS.findall(_source(module)):
        for name in [one] if one else (several or line).split(","):
            if name.strip() and name.split()[0] != "compiled":
                yield f"{__package__}.{name.split()[0]}"


@cache
def _source(module: str) -> str:
    return inspect.getsource(sys.modules[module]) if module in sys.modules else ""


@cache
def _digest(module: str) -> str:
    return hashlib.sha256(_source(module).encode()).hexdigest()


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
