"""Kernels on disk that an earlier version left there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
