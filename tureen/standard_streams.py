"""The standard streams of a command, which whoever starts it may have closed, or led where nothing fits.

A stream that is closed is opened: what would be opened next would else be taken for it. Reading finds nothing
then, what is written to stdout is lost and told so, what is written to stderr is lost.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_REASONS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Why a stream takes nothing; a reader that has gone (EPIPE) is no failure."""


class OutputLost(Exception):
    """What was written to stdout has not arrived."""


def opened() -> None:
    """Open those that are closed."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    if sys.stdout is None:  # not for writing, so that writing fails
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


@contextmanager
def flushed() -> Iterator[None]:
    """All that is written within has left this process at the end. Raises OutputLost."""
    try:
        try:
            yield
        finally:
            with suppress(ValueError):  # it was closed
                sys.stdout.flush()
    except OSError as failed:
        if failed.errno not in _REASONS or failed.filename is not None:
            raise
        _forget()
        raise OutputLost(f"the output cannot be written: {failed.strerror}") from None


def _forget() -> None:
    """What is left in the buffer is not written when the process ends, either."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
