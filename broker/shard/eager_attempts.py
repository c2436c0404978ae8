"""Eager answers that may take a step too long are tried beside the shard, one after another.

What comes of an attempt is looked at by the engine between two steps (:mod:`engine.queries.attempts`). Used
by the shard's thread alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from engine.engine import Engine
from engine.queries.attempts import Attempt


class EagerAttempts:
    """Those of one shard."""

    def __init__(self, number: int, wake: Callable[[], None]) -> None:
        """wake: the shard is to look at what was made."""
        self._number = number
        self._wake = wake
        self._thread: threading.Thread | None = None

    def some(self, engine: Engine) -> bool:
        """Begin the next attempt, where none is at work. Returns whether the view is another by one that is
        over.
        """
        if self._thread is None or not self._thread.is_alive():
            attempt = engine.attempt()
            if attempt is not None:
                name = f"shard-{self._number}-eager"
                self._thread = threading.Thread(target=self._run, args=[attempt], name=name, daemon=True)
                self._thread.start()
        return engine.take_attempts()

    def _run(self, attempt: Attempt[Any]) -> None:
        attempt.run()
        self._wake()
