"""Kernels on disk that an earlier version left there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import pytest

from engine.kernels import calendars, compiled

EARLIER = """
from typing import NamedTuple
import numpy as np
from engine.kernels.compiled import kernel

class {name}(NamedTuple):
    values: np.ndarray

@kernel
def total(held):
    return held.values.sum()

def run():
    return float(total({name}(np.ones(3))))
"""


def test_an_index_that_names_a_class_that_is_gone_is_made_anew(tmp_path: Path) -> None:
    module = tmp_path / "kernels_of_then.py"
    for name in ("Before", "After"):
        module.write_text(EARLIER.format(name=name))
        code = (
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kernels_of_then as k; print(k.run())"
        )
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert told.stdout.strip() == "3.0", told.stderr


def stamp_of(kernel_of: object) -> object:
    return kernel_of._cache._cache_file._source_stamp  # type: ignore[attr-defined]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_kernel_is_compiled_anew_when_one_that_it_calls_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = stamp_of(compiled.kernel(calendars.insert.py_func))
    assert before == stamp_of(calendars.insert)
    source = compiled._source
    for name, is_beneath in (("exit_order", True), ("blocks", True), ("arranged", False)):
        for each in (compiled._digest, compiled._beneath):
            each.cache_clear()
        monkeypatch.setattr(
            compiled, "_source", lambda of, name=name: source(of) + "#" * of.endswith(f".{name}")
        )
        assert (stamp_of(compiled.kernel(calendars.insert.py_func)) != before) is is_beneath
    for each in (compiled._digest, compiled._beneath):
        each.cache_clear()
