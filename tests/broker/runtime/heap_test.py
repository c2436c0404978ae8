"""One heap: what threads have freed is given back to the system."""

import subprocess
import sys

import pytest

from broker.memory.held import held_bytes

MIB = 1 << 20
PROGRAM = """
import sys, threading
from broker.runtime.heap import share_one_heap

if sys.argv[1] == "one":
    share_one_heap()
import numpy as np
from broker.memory.held import held_bytes, trim_heap

np.zeros(20 << 20, np.uint8)  # freed: the C library keeps twice as much at an end from now on
together = threading.Barrier(THREADS)

def work():
    together.wait()
    arrays = [np.ones(1 << 20, np.uint8) for _ in range(12)]
    together.wait()
    del arrays
    together.wait()

before = held_bytes()
threads = [threading.Thread(target=work) for _ in range(THREADS)]
for one in threads:
    one.start()
for one in threads:
    one.join()
trim_heap()
print(held_bytes() - before)
"""


def kept_by(heaps: str) -> int:
    """Bytes that a process keeps of 96 MiB which eight threads had and freed."""
    program = PROGRAM.replace("THREADS", "8")
    done = subprocess.run(
        [sys.executable, "-c", program, heaps], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


@pytest.mark.skipif(not held_bytes() or sys.platform != "linux", reason="the kernel does not tell it")
def test_what_threads_freed_is_given_back() -> None:
    assert kept_by("one") < 8 * MIB
    assert kept_by("many") > 48 * MIB, "the C library gives it back by itself: one heap has no use any more"
