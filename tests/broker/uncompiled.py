"""Kernels that nobody has compiled, and programs that should."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

SOURCE = """
from numba import njit


@njit(cache=True)
def one(number):
    return number + 1


@njit(cache=True)
def two(number):
    return number + 2
"""
WAITS = ("-c", "import sys; sys.stdin.read()")
"""Compiles nothing, until it is ended."""


def uncompiled(directory: Path) -> ModuleType:
    """A module with two kernels, ``one`` and ``two``. directory: where it is written."""
    (directory / "kernels.py").write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("kernels", directory / "kernels.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
