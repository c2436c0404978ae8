"""One owner per directory: a file lock that the operating system releases when its holder dies.

The file ``owner`` names the holder's process, for the error that the second one gets. It stays when the
holder goes; only the lock on it counts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from tureen.errors import StoreFull, StoreInUse

OWNER_FILE = "owner"


class Owner:
    """Holds a directory from construction to :meth:`release`.

    Raises StoreInUse: someone else holds it, this process included. StoreFull: no right or no space to
    write in it.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / OWNER_FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreFull(
                f"the store at {directory} cannot be written: {error.strerror}",
                hint="make the directory writable and see that its disk has space",
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read_pid(self._file)
            os.close(self._file)
            raise in_use(directory, holder) from error
        with contextlib.suppress(OSError):  # on a full disk the pid stays unknown, the lock holds
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let the next owner in. Harmless when done twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def in_use(directory: Path, pid: int | None) -> StoreInUse:
    """The error for a directory that has an owner already; ``pid`` None: unknown who."""
    if pid == os.getpid():
        who = "this process already"
    else:
        who = "another process" if pid is None else f"process {pid}"
    return StoreInUse(
        f"the store at {directory} is in use by {who}",
        hint="stop the broker that owns it, or give this one another data directory",
    )


def _read_pid(file: int) -> int | None:
    try:
        return int(os.pread(file, 32, 0))
    except (OSError, ValueError):
        return None
