"""How much memory the worker may use: set, or made from what the cgroup and the machine have.

The limit is the least of the machine's memory and of the limits of this process's cgroup and those above it
(v2 ``memory.max``, v1 ``memory.limit_in_bytes``). The reserve is what others in it need: the control process,
the supervisor, the embedded Kafka, and a part for the kernel's own pages and what comes between two looks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tureen.errors import SettingsError

MIB = 1024 * 1024
WORKER_BYTES = 250 * MIB
"""A worker takes about so much with its libraries, without a row."""
COMPILED_BYTES = 100 * MIB
"""It takes about so much more for compiled code, once queries of several kinds are there."""
LEAST_BYTES = 320 * MIB
"""Below this a worker would register nothing: it does not from four fifths of its budget on."""
ROWS_SHARE = 0.65
"""Rows leave memory above this share of the budget."""
CONTROL_BYTES = 160 * MIB
"""Memory that the control process and the supervisor take."""
KAFKA_BYTES = 900 * MIB
"""Memory that the embedded Kafka takes: its heap and what a Java process needs beside it."""
SHARE = 0.05
"""Share of the limit that is left to the kernel and to what comes between two looks."""


@dataclass(frozen=True, slots=True)
class Budget:
    """budget_bytes: of the worker. limit_bytes: of all that share it. source: where the limit is from.
    is_set: the budget is the user's.
    """

    budget_bytes: int
    limit_bytes: int
    source: str
    is_set: bool


def budget(wanted_bytes: int, *, embedded_kafka: bool, root: Path = Path("/")) -> Budget:
    """wanted_bytes: as set; 0: by the limit. root: where /proc and /sys are found.

    Raises SettingsError where the limit is below what was set, or is too little for a worker.
    """
    limit_bytes, source = limit(root)
    if wanted_bytes:
        if wanted_bytes > limit_bytes:
            raise SettingsError(
                f"TUREEN_MEMORY_BUDGET_BYTES={wanted_bytes} is above the {limit_bytes:,} bytes of {source}",
                hint="the worker would be killed before it reached its budget: lower it, or raise the limit",
            )
        if wanted_bytes < LEAST_BYTES:
            raise SettingsError(
                f"TUREEN_MEMORY_BUDGET_BYTES={wanted_bytes} is below {LEAST_BYTES:,} bytes, with which a "
                "worker could register nothing: without a row it takes most of them",
                hint=f"let it be {useful_bytes():,} or more",
            )
        return Budget(wanted_bytes, limit_bytes, source, True)
    reserve = int(SHARE * limit_bytes) + CONTROL_BYTES + (KAFKA_BYTES if embedded_kafka else 0)
    if limit_bytes - reserve < LEAST_BYTES:
        raise SettingsError(
            f"{source} has {limit_bytes:,} bytes of memory; {reserve:,} are for other processes, "
            "which leaves too little for a worker",
            hint=f"give it {reserve + useful_bytes():,} bytes or more"
            + (", or use a Kafka elsewhere: TUREEN_KAFKA__BOOTSTRAP_SERVERS" if embedded_kafka else ""),
        )
    return Budget(limit_bytes - reserve, limit_bytes, source, False)


def useful_bytes(worker_bytes: int = WORKER_BYTES) -> int:
    """The least budget with which rows may stay in memory. worker_bytes: what is taken without any."""
    return -(-int((worker_bytes + COMPILED_BYTES) / ROWS_SHARE) // MIB) * MIB


def budget_warning(found: Budget) -> str | None:
    """What to say of a budget of which the worker itself takes most."""
    useful = useful_bytes()
    if found.budget_bytes >= useful:
        return None
    return (
        f"{found.budget_bytes:,} bytes are little: the worker takes about {WORKER_BYTES:,} of them without a "
        f"row, and some {COMPILED_BYTES:,} more for compiled code; with less than {useful:,} rows leave "
        "memory for the disk at once, and registrations and answers may be refused"
    )


def reserve_warning(found: Budget, *, embedded_kafka: bool) -> str | None:
    """What to say of a budget that leaves the others too little."""
    others = CONTROL_BYTES + (KAFKA_BYTES if embedded_kafka else 0)
    if found.is_set and found.budget_bytes + others > found.limit_bytes:
        return (
            f"memory_budget_bytes leaves {found.limit_bytes - found.budget_bytes:,} of the "
            f"{found.limit_bytes:,} bytes of {found.source} to other processes, which may need {others:,}"
        )
    return None


def limit(root: Path = Path("/")) -> tuple[int, str]:
    """(bytes, where from): the least of the cgroup's limits and the machine's memory."""
    found = [(_machine(root), "this machine")]
    found += [(limit_bytes, f"the cgroup ({path})") for limit_bytes, path in _cgroups(root)]
    return min(found, key=lambda one: one[0])


def _machine(root: Path) -> int:
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroups(root: Path) -> Iterator[tuple[int, str]]:
    """The limits of this process's cgroups and of those above them. In a container the path that the kernel
    tells may not be there; the top that is mounted is then the container's own.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    tops: tuple[str, ...]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            tops, name = ("sys/fs/cgroup", "sys/fs/cgroup/unified"), "memory.max"
        elif "memory" in controllers.split(","):
            tops, name = ("sys/fs/cgroup/memory",), "memory.limit_in_bytes"
        else:
            continue
        for top in tops:
            at = root / top / path.lstrip("/")
            while True:
                limit_bytes = _number(at / name)
                if limit_bytes is not None:
                    yield limit_bytes, "/" + str((at / name).relative_to(root))
                if at == root / top or at == at.parent:
                    break
                at = at.parent


def _number(path: Path) -> int | None:
    """A limit; None where the file is missing or says that there is none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
