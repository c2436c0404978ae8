"""How the worker's last lives ended, where that was against its will: so that a loop is recognised.

The supervisor notes each one in ``lives.json`` of the data directory, the worker reads them when it starts.
A cause that ended several lives within a while ends the next as well, so the worker then comes up *held*: it
serves HTTP and does not try again by itself what ended it. Standard library only.

Causes: ``memory`` (SIGKILL while memory was short), ``shard-N`` (the thread of one shard alone hung at work),
``worker`` (the event loop hung, or it cannot be told which shard), ``crash`` (the process ended by itself, by
an exit or a fault; holds no shard). One that somebody ended from outside is not noted.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "lives.json"
REPEATED = 3
"""So many lives with the same end are a loop ..."""
WITHIN_S = 900.0
"""... within so long a time."""
KEPT_MAX = 32
SHORT = 0.8
"""Memory counts as short from this share of the budget on."""


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """One life's. at_s: since 1970. budget_bytes: that it had; 0 where it said none. at: what its thread was
    at that hung.
    """

    at_s: float
    cause: str
    budget_bytes: int = 0
    at: str = ""


def read(data_dir: Path) -> list[LifeEnd]:
    """The last ends, oldest first; none where the file is missing or no such file."""
    try:
        return [LifeEnd(**one) for one in json.loads((data_dir / NAME).read_bytes())]
    except (OSError, ValueError, TypeError):
        return []


def note(data_dir: Path, end: LifeEnd) -> None:
    """Add one; a disk that takes nothing is passed over."""
    path = data_dir / NAME
    ends = [*read(data_dir), end][-KEPT_MAX:]
    with contextlib.suppress(OSError):
        _write(path, ends)


def forget(data_dir: Path, causes: Sequence[str]) -> None:
    """What ended lives by these causes is mended, or an operator has said to try it again."""
    kept = [end for end in read(data_dir) if end.cause not in causes]
    with contextlib.suppress(OSError):
        _write(data_dir / NAME, kept)


def _write(path: Path, ends: Sequence[LifeEnd]) -> None:
    beside = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump([asdict(end) for end in ends], file)
    beside.replace(path)


def since(data_dir: Path, at_s: float) -> list[LifeEnd]:
    """The ends that were noted at an instant or after it, in seconds since 1970."""
    return [end for end in read(data_dir) if end.at_s >= at_s]


def repeated(ends: Sequence[LifeEnd], now_s: float, budget_bytes: int) -> list[str]:
    """The causes that ended so many lives of late. Ends by ``memory`` with another budget do not count: who
    has changed it wants to try.
    """
    counts: dict[str, int] = {}
    for end in ends:
        if not 0 <= now_s - end.at_s <= WITHIN_S:
            continue
        if end.cause == "memory" and end.budget_bytes not in (0, budget_bytes):
            continue
        counts[end.cause] = counts.get(end.cause, 0) + 1
    return sorted(cause for cause, count in counts.items() if count >= REPEATED)


def oom_kills() -> int:
    """How many processes the kernel has killed (out of memory), in this cgroup or on this machine; grows.
    0 where that is not told.
    """
    found = 0
    for path, name in (
        ("/proc/vmstat", "oom_kill"),
        ("/sys/fs/cgroup/memory.events", "oom_kill"),
        ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"),
    ):
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            found += sum(int(line.split()[1]) for line in file if line.split()[:1] == [name])
    return found


def was_short(memory: tuple[int, int]) -> bool:
    """Whether a process that noted (used, budget) was short of memory."""
    used, budget = memory
    return budget > 0 and used >= SHORT * budget
