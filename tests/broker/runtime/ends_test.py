"""What the terminal is told of a child that ended."""

from __future__ import annotations

import signal

from broker.runtime.lives import LifeEnd
from broker.supervisor import told_end

SHORT = LifeEnd(1.0, "memory", 1_000)


def test_out_of_memory_is_said_where_the_kernel_says_so_alone() -> None:
    code = -signal.SIGKILL
    assert told_end(code, SHORT, kernel_kills=True) == "signal SIGKILL (out of memory)"
    assert told_end(code, SHORT, kernel_kills=False) == "signal SIGKILL (not by the kernel; memory was short)"
    assert told_end(code, None, kernel_kills=True) == "signal SIGKILL"
    assert told_end(3, None, kernel_kills=False) == "exit code 3"
