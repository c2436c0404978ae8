"""One owner for a data directory.

An advisory lock (flock) on ``broker.lock``. The open file passes to the supervisor's children, so that the
directory is owned until the last of them is gone, whoever died first. The file has the owner's pid, those of
its children, and its address, for the message of the one who came second. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from topics.private import private_directory
from tureen.errors import StoreFull, StoreInUse

LOCK_NAME = "broker.lock"


WAIT_S = 20.0
"""Children of an owner that was killed end by themselves within a few seconds."""


def acquire(
    data_dir: Path, facts: dict[str, object], say: Callable[[str], None], wait_s: float = WAIT_S
) -> int:
    """Own the directory, made if missing; returns the file descriptor that holds the lock.

    Waits for the children of an owner that was killed. say: told, once, that it waits.
    Raises StoreInUse: another broker lives on it. StoreFull: it cannot be made or written.
    DirectoryNotPrivate: other users can enter it.
    """
    path = data_dir / LOCK_NAME
    try:
        private_directory(data_dir)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as failed:
        raise unusable(data_dir, failed) from None
    deadline = time.monotonic() + wait_s
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            owner = _owner(descriptor)
            pid = owner.get("pid")
            if isinstance(pid, int) and _alive(pid):
                os.close(descriptor)
                raise StoreInUse(
                    f"another broker (process {pid}, {owner.get('url')}) owns {data_dir}",
                    hint="use that one, stop it, or start this one with another --data-dir, port and service "
                    "id",
                ) from None
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise _left_behind(data_dir, owner) from None
            if not told:
                told = True
                say("The broker that ran here was killed; waiting for its processes to end ...")
            time.sleep(0.05)
    os.ftruncate(descriptor, 0)
    note(descriptor, {"pid": os.getpid()} | facts)
    return descriptor


def unusable(data_dir: Path, failed: OSError) -> StoreFull:
    """The error for a data directory that cannot be made or written."""
    return StoreFull(
        f"the data directory {data_dir} cannot be used: {failed.strerror}",
        hint="free some space, make it writable for this user, or choose another one: TUREEN_DATA_DIR",
    )


def note(descriptor: int, facts: dict[str, object]) -> None:
    """Add to what the file says of the owner; by the owner."""
    text = json.dumps(_owner(descriptor) | facts).encode()
    os.pwrite(descriptor, text, 0)
    os.ftruncate(descriptor, len(text))


def _left_behind(data_dir: Path, owner: dict[str, object]) -> StoreInUse:
    children = owner.get("children")
    left = [pid for pid in children if _alive(pid)] if isinstance(children, list) else []
    if not left:
        return StoreInUse(
            f"processes of a broker that was killed own {data_dir}", hint="end them, then start again"
        )
    pids = " ".join(map(str, left))
    return StoreInUse(
        f"processes of a broker that was killed still own {data_dir}: {pids}",
        hint=f"they do not end by themselves: kill -9 {pids}, then start again",
    )


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
    """Whether a process runs; one that has ended and that nobody has waited for yet does not."""
    with contextlib.suppress(OSError, IndexError):  # there is no such file on other systems than Linux
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
