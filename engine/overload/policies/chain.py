"""Chain: the batch on the steepest segment of its progress chart, the oldest of them
(:mod:`engine.overload.progress_chart`).

With modules that take a unit of time and let pass no more than comes in, all that waits is at no instant more
than a batch a plan above what a scheduler that knows the future has.
"""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.by_key import ByKey
from engine.overload.policies.ready_heap import Key
from engine.overload.scheduled_module import ScheduledModule


class Chain(ByKey):
    """Ties go to the batch that came first."""

    name: ClassVar[str] = "chain"

    def key(self, module: ScheduledModule) -> Key:
        return -module.chart.slope, module.queue[0].origin
