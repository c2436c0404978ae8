"""Functions that end their process for some rows where they have one of their own, and raise elsewhere."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tureen


def fail(*, hard: bool) -> None:
    """End the process, or raise in one that is not of functions alone."""
    if not sys.argv[0].endswith("function_process.py"):
        raise ValueError("no value")
    if hard:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(7)


@tureen.function(arguments=["BIGINT"], returns="BIGINT", deterministic=True, isolated=True)
def third(number: int) -> int | None:
    """Ends at every fifth, raises for some, and is NULL for others."""
    if number % 5 == 0:
        fail(hard=False)
    if number % 7 == 0:
        raise ValueError("seven")
    return None if number % 4 == 0 else number // 3


@tureen.function(arguments=["DOUBLE"], returns="BOOLEAN", vectorised=True, deterministic=True, isolated=True)
def is_near(numbers: Any) -> Any:
    """Ends where one is large."""
    if (abs(numbers) > 50).any():
        fail(hard=True)
    return np.abs(numbers) < 2


@tureen.function(arguments=["STRING"], returns="STRING", vectorised="arrow", isolated=True)
def shouted(texts: pa.Array) -> pa.Array:
    """Not of its type where one is empty."""
    if pc.any(pc.equal(texts, "")).as_py():
        return pa.array([1] * len(texts))
    return pc.utf8_upper(texts)
