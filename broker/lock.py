"""One owner for a data directory.

An advisory lock (flock) on ``broker.lock``. The open file passes to the supervisor's children, so that the
directory stays owned until the last of them is gone, whoever died first. The file tells the owner's pid and
address, for the message of the one who came second. Standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

from topics.private import private_directory
from tureen.errors import StoreFull, StoreInUse

LOCK_NAME = "broker.lock"


def acquire(data_dir: Path, facts: dict[str, object], wait_s: float = 5.0) -> int:
    """Own the directory, made if missing; returns the file descriptor that holds the lock.

    Waits a little for the children of an owner that has just died.
    Raises StoreInUse: another broker lives on it. StoreFull: it cannot be made or written.
    DirectoryNotPrivate: other users can enter it.
    """
    path = data_dir / LOCK_NAME
    try:
        private_directory(data_dir)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as failed:
        raise StoreFull(
            f"the data directory {data_dir} cannot be used: {failed.strerror}",
            hint="make room or give the user the right to write, or name another one: TUREEN_DATA_DIR",
        ) from None
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            owner = _owner(descriptor)
            pid = owner.get("pid")
            if time.monotonic() > deadline or (isinstance(pid, int) and _alive(pid)):
                os.close(descriptor)
                where = f" (process {pid}, {owner.get('url')})" if pid else ""
                raise StoreInUse(
                    f"another broker{where} owns {data_dir}",
                    hint="use that one, stop it, or start this one with a --data-dir, port and service id "
                    "of its own",
                ) from None
            time.sleep(0.05)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"pid": os.getpid()} | facts).encode(), 0)
    return descriptor


def owner(data_dir: Path) -> dict[str, object] | None:
    """The facts of the broker that owns the directory now; None where none does."""
    try:
        descriptor = os.open(data_dir / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _owner(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _owner(descriptor: int) -> dict[str, object]:
    try:
        facts = json.loads(os.pread(descriptor, 4_096, 0))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
