"""Calls of users' functions that go on after nobody waits for them: they are broken off where that can be.

A thread in such a call gets an exception that is raised at its next step of Python, so a loop in Python ends.
What does not come back to Python, as a call of C that waits, goes on, and so does what catches everything. A
function that is called once more, for fewer rows, is broken off once more.
"""

from __future__ import annotations

import ctypes
import sys
import threading

from engine.language.evaluation.user_calls import is_calling


class EndlessCalls:
    """Threads that nobody waits for. One thread owns it."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def __len__(self) -> int:
        return len(self._threads)

    def add(self, thread: threading.Thread) -> None:
        """Nobody waits for a thread any more."""
        self._threads.append(thread)

    def break_off(self) -> None:
        """Have those end that are in a call now; nothing else of what they do is disturbed. O(threads)."""
        self._threads = [one for one in self._threads if one.is_alive()]
        for one in self._threads:
            frame = sys._current_frames().get(one.ident or 0)
            if frame is not None and is_calling(frame):
                # It passes `except Exception`, and a thread that ends by it says nothing.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(one.ident or 0), ctypes.py_object(SystemExit)
                )
            del frame
