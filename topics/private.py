"""Directories that only their owner can enter.

State, sockets, logs and the embedded Kafka's files hold rows, answers and handles, so whoever makes the data
directory makes it for one user, and whoever finds one that others can enter refuses it. What is in such a
directory needs no permissions of its own. Standard library only.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from pathlib import Path

from tureen.errors import DirectoryNotPrivate

UMASK = 0o077
"""Mask of every process that writes there: a file stays its owner's when it is moved elsewhere."""


def private_directory(path: Path) -> None:
    """Make a directory of mode 0700, with those above it, or check the one that is there.

    A symbolic link is followed: what it leads to is checked. A directory above it that everybody may write is
    refused as well, unless it is sticky (as /tmp is): there, another user could put a directory of their own
    in its place.

    Raises DirectoryNotPrivate, and OSError where it cannot be made or looked at.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_owner(path, path.lstat())
    real = path.resolve(strict=True)
    found = real.stat()
    _check_owner(real, found)
    if found.st_mode & 0o077:
        raise DirectoryNotPrivate(
            f"other users of this machine can enter {real}, which holds rows and answers "
            f"(mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"chmod 700 {shlex.quote(str(real))}",
        )
    for above in real.parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise DirectoryNotPrivate(
                f"every user of this machine can replace {real}: {above} has mode {stat.S_IMODE(mode):04o}",
                hint=f"chmod o-w {shlex.quote(str(above))}, or name another directory by --data-dir or "
                "TUREEN_DATA_DIR",
            )


def check_code(directory: Path) -> None:
    """Refuse to run what is in a directory that every user of the machine can write.

    Raises DirectoryNotPrivate, and OSError where it cannot be looked at.
    """
    real = directory.resolve(strict=True)
    if real.stat().st_mode & stat.S_IWOTH:
        raise DirectoryNotPrivate(
            f"every user of this machine can write {real}, and what is there runs with this user's rights",
            hint=f"chmod o-w {shlex.quote(str(real))}, or name another directory",
        )


def _check_owner(path: Path, found: os.stat_result) -> None:
    user = os.geteuid()
    # A link that root made is as good as one of this user's.
    if found.st_uid == user or (stat.S_ISLNK(found.st_mode) and found.st_uid == 0):
        return
    raise DirectoryNotPrivate(
        f"{path} belongs to {_name(found.st_uid)}, and this process runs as {_name(user)}",
        hint=f"sudo chown -R {_name(user)} {shlex.quote(str(path))}, or name another directory by --data-dir "
        "or TUREEN_DATA_DIR",
    )


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
