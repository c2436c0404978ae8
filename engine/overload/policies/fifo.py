"""First in, first out: a batch is run to its end before the next one begins."""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.by_key import ByKey
from engine.overload.policies.ready_heap import Key
from engine.overload.scheduled_module import ScheduledModule


class FifoScheduling(ByKey):
    """The batch that came first, wherever it is."""

    name: ClassVar[str] = "fifo"

    def key(self, module: ScheduledModule) -> Key:
        return (module.queue[0].origin,)
