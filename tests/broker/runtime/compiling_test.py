"""Kernels that several processes need at once are compiled by one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNELS = """
from numba import njit


@njit(cache=True)
def inner(number):
    return number + 1


@njit(cache=True)
def outer(number):
    return inner(number) * 2
"""
USE = """
import threading
from numba.core import event
from broker.runtime.compiling import compile_once
from kernels import inner, outer

compiled = []


class Compilations(event.Listener):
    def on_start(self, event):
        if event.data.get("return_type", self) is not self:
            compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


event.register("numba:compile", Compilations())
compile_once()
compile_once()
threads = [threading.Thread(target=kernel, args=(3,)) for kernel in (inner, outer, inner, outer)]
print("ready", flush=True)
input()
for each in threads:
    each.start()
for each in threads:
    each.join()
assert outer(3) == 8
print(*sorted(compiled))
"""


def test_each_is_compiled_once_and_read_by_the_others(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    environment = os.environ | {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    users = [
        subprocess.Popen(
            [sys.executable, "-c", USE],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for user in users:
        assert user.stdout is not None
        assert user.stdout.readline() == "ready\n"
    for user in users:  # all have begun before the first is waited for
        assert user.stdin is not None
        user.stdin.write("\n")
        user.stdin.flush()
    compiled = [user.communicate()[0].split() for user in users]
    assert [user.returncode for user in users] == [0, 0, 0]
    assert sorted(name for one in compiled for name in one) == ["inner", "outer"]
