"""Work that somebody may call off: looked at between two of its pieces, each of which takes little.

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

_check: ContextVar[Check | None] = ContextVar("check", default=None)


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
