"""How many files and connections this process may have open."""

from __future__ import annotations

import resource

from broker import logs

BESIDES = 1_000
"""Of stores, Kafka clients, and connections that are no feeds."""

log = logs.get()


def allow(feeds_max: int) -> None:
    """Raise the limit of open files as far as it goes; say so where that is not enough for all feeds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, feeds_max + BESIDES)
    if soft != resource.RLIM_INFINITY and soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        except (OSError, ValueError):  # the system has a limit of its own below that (macOS)
            hard = soft
    if hard < feeds_max + BESIDES:
        log.warning(
            "open_files_limited",
            allowed=hard,
            wanted=feeds_max + BESIDES,
            hint="raise the hard limit (ulimit -Hn, LimitNOFILE=) or lower feeds_max: the rest would wait",
        )
