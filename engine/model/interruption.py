"""Work that somebody may call off: looked at between two of its pieces, each of which takes little; and work
that may take as much memory as there is, which is asked for before large arrays are made.

Steps are never called off. What a request asks is worked out beside them, on views, for somebody who may have
gone, or whose time may be over: whoever begins such work gives it a question, which raises what ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class CalledOff(Exception):
    """Ends work that nobody wants any more, or that took too long."""


Check = Callable[[], None]
"""Raises what ends the work; returns where it may go on."""

RequireRoom = Callable[[int], None]
"""Raises what ends the work where there is no memory for so many bytes more."""

ROOM_ASKED_MIN = 4 << 20
"""Fewer bytes are taken without asking."""

_check: ContextVar[Check | None] = ContextVar("check", default=None)
_require: ContextVar[RequireRoom | None] = ContextVar("require", default=None)


@contextmanager
def interruptible(check: Check) -> Iterator[None]:
    """What is done inside asks ``check`` between its pieces."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def asked() -> Check | None:
    """Who is asked between pieces of what is done now; None: nobody."""
    return _check.get()


def may_go_on() -> None:
    """Raise what ends the work, if something does; called between two pieces. O(1) where nobody asked."""
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def bounded(require: RequireRoom | None) -> Iterator[None]:
    """What is done inside asks ``require`` before it makes large arrays. None: it asks nobody."""
    before = _require.set(require)
    try:
        yield
    finally:
        _require.reset(before)


def require_room(nbytes: int) -> None:
    """Raise what ends the work if there is no memory for so many bytes more. O(1) where nobody asked."""
    require = _require.get()
    if require is not None and nbytes >= ROOM_ASKED_MIN:
        require(nbytes)


class GrowingRoom:
    """Room for what grows piece by piece: what was asked for once is not asked for again."""

    def __init__(self) -> None:
        self._asked = 0

    def grow(self, nbytes: int) -> None:
        """It takes so many bytes in all by now. As :func:`require_room`."""
        if nbytes - self._asked >= ROOM_ASKED_MIN:
            require_room(nbytes - self._asked)
            self._asked = nbytes
