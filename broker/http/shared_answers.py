"""Answers that many pages ask for again and again: each is made at most twice a second, whoever asks.

Whoever asks meanwhile waits for the one that is being made, or gets the last one. Used on the event loop
alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import orjson
from fastapi.responses import Response

AGE_S = 0.5
KEPT_MAX = 256
"""Answers that are kept; those made first are forgotten first."""


class SharedAnswers:
    """Encoded answers by what was asked."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[float, asyncio.Task[bytes]]] = {}

    async def of(self, asked: Hashable, make: Callable[[], Awaitable[Any]]) -> Response:
        """JSON of what ``make`` gives. Raises what it raises; that is not kept."""
        made_s, task = self._kept.get(asked, (0.0, None))
        failed = task is not None and task.done() and (task.cancelled() or task.exception() is not None)
        if task is None or failed or (task.done() and time.monotonic() - made_s > AGE_S):
            task = asyncio.create_task(_encoded(make))
            self._kept.pop(asked, None)
            self._kept[asked] = time.monotonic(), task
            if len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return Response(await asyncio.shield(task), media_type="application/json")


async def _encoded(make: Callable[[], Awaitable[Any]]) -> bytes:
    return orjson.dumps(await make(), option=orjson.OPT_NON_STR_KEYS)
