"""What a child of the supervisor does when that is gone: it ends, soon, whatever it waits for.

Until the last child is gone the data directory is owned, so a new start waits for them. What is cut off is
safe: the journal is the truth. Standard library only.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

END_S = 3.0
"""Longest that an orderly end may take; then the kernel ends the process, even one that is busy."""


def watch(supervisor_fd: int, noticed: Callable[[], object]) -> None:
    """Have ``noticed`` called, in a thread of its own, when the supervisor is gone.

    supervisor_fd: the read end of a pipe whose other end the supervisor has, and nobody writes to.
    """

    def wait() -> None:
        os.read(supervisor_fd, 1)
        signal.setitimer(signal.ITIMER_REAL, END_S)  # SIGALRM: nothing handles it, so it ends the process
        noticed()

    threading.Thread(target=wait, name="orphan-watch", daemon=True).start()
