"""Log lines: events with fields, one line each, on standard error.

Handles, payloads and secrets never come here: callers name queries by their public id. Lines of libraries
pass through the same renderer from WARNING on.
"""

from __future__ import annotations

import errno
import logging
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import structlog

REPEATED_S = 30.0
"""A Kafka that is away is told of several times a second by some clients."""


COORDINATOR_S = 10.0
"""A new Kafka makes the topic of its groups when the first of them asks; until then it has no coordinator."""


class Unready(logging.Filter):
    """Holds back that a group's coordinator is not there yet, until that has been so for a while.

    now_s: a clock that does not go back.
    """

    _CODE = 15
    """COORDINATOR_NOT_AVAILABLE, of Kafka's protocol."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._since_s = self._last_s = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if not record.name.startswith("aiokafka.") or getattr(error, "errno", None) != self._CODE:
            return True
        now_s = self._now_s()
        if now_s - self._last_s > COORDINATOR_S:  # it was there in between
            self._since_s = now_s
        self._last_s = now_s
        return now_s - self._since_s > COORDINATOR_S


class _Seldom(logging.Filter):
    """Passes a message of a library on at most every so often, however often it is repeated."""

    def __init__(self, period_s: float) -> None:
        super().__init__()
        self._period_s = period_s
        self._passed_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now_s = time.monotonic()
        key = f"{record.name} {record.msg!s:.60}"
        if now_s - self._passed_s.get(key, -self._period_s) < self._period_s:
            return False
        if len(self._passed_s) > 1_000:
            self._passed_s.clear()
        self._passed_s[key] = now_s
        return True


class OneLine(logging.Filter):
    """Leaves out where in a library a disk that takes nothing was met; the message says what is wrong."""

    _ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
    _ROCKSDB = "IO error:"
    """What RocksDB's failures begin with, which have no type of their own."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        of_disk = isinstance(error, OSError) and error.errno in self._ERRNOS
        if of_disk or (type(error) is Exception and str(error).startswith(self._ROCKSDB)):
            record.exc_info = record.exc_text = None
        return True


def configure(process: str, level: str = "info", style: str = "console") -> None:
    """Set up this process; ``process`` stands in every line."""

    def with_process(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event.setdefault("process", process)
        return event

    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        with_process,
    ]
    renderer: structlog.typing.Processor
    if style == "json":
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=28
        )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    if level != "debug":
        handler.addFilter(Unready())
        handler.addFilter(OneLine())
        handler.addFilter(_Seldom(REPEATED_S))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    for noisy in ("asyncio", "aiokafka", "numba", "httpcore", "httpx"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def get(**fields: Any) -> structlog.typing.FilteringBoundLogger:
    """A logger that adds these fields to each of its events."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(**fields)
    return logger
