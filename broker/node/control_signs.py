"""The control process as the worker sees it: whether it is there, answers, and has told all it knows."""

from __future__ import annotations

import os
import time


class ControlSigns:
    """Signs of life of the control process, which come every half second."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._complete = False
        self._seen_s = time.monotonic()

    def seen(self, pid: int, *, complete: bool) -> None:
        """A sign of life. complete: it has told this worker the whole registry."""
        self._pid, self._complete, self._seen_s = pid, complete, time.monotonic()

    def missing(self, silent_s: float) -> str | None:
        """What is wrong with it, as a clause; None: nothing. silent_s: how long it may give no sign.

        A process that died is known at once, by its id; one that was started since has given no sign yet.
        """
        if self._pid is None or not _runs(self._pid):
            return "the control process is not running"
        if time.monotonic() - self._seen_s > silent_s:
            return f"the control process has given no sign of life for over {silent_s:.0f} s"
        return None if self._complete else "the control process has not sent the registry yet"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's has the id now
        return False
    return True
