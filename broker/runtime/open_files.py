"""How many files and connections this process may have open."""

from __future__ import annotations

import resource

from broker.base import logs

BESIDES = 1_000
"""Files that stores, Kafka clients, and whatever else is no connection of a client may have open."""

log = logs.get()


def allow(connections_max: int) -> int:
    """Raise the limit of open files as far as it goes; how many connections of clients that leaves.

    They never take the files that the stores and Kafka's clients need: fewer are allowed where the limit is
    low, and the log says so.
    """
    wanted = connections_max + BESIDES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, wanted)
    if soft != resource.RLIM_INFINITY and soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        except (OSError, ValueError):  # the system has a limit of its own below that (macOS)
            hard = soft
    if soft == resource.RLIM_INFINITY or hard >= wanted:
        return connections_max
    allowed = max(hard - BESIDES, hard // 2)
    log.warning(
        "open_files_limited",
        allowed=hard,
        wanted=wanted,
        connections=allowed,
        hint="raise the hard limit (ulimit -Hn, LimitNOFILE=), or lower http_connections_max",
    )
    return allowed
