"""The view of a shard that readers have: its answers after the last journalled step.

The engine is ahead of it while a transaction is written. Between two steps it changes by what was heard of
topics, which tells how far their streams are.
"""

from __future__ import annotations

from broker.shard.steps import Steps
from broker.shard.streams import Streams
from engine.views.view import View


class CurrentView:
    """``view`` may be read from any thread, the rest is the shard's thread's."""

    def __init__(self, steps: Steps, streams: Streams) -> None:
        self._steps = steps
        self._streams = streams
        self.view = steps.engine.view()

    def told(self, view: View) -> View:
        """The engine's view between two steps, which says how far sources are."""
        return self._streams.catch_ups.told(view)

    def show(self) -> None:
        """Let readers see what the last step left."""
        self.view = self.told(self._steps.engine.view())

    def hear(self) -> None:
        """Let readers see what was heard of topics since; no step was made."""
        self.view = self.told(self.view)
