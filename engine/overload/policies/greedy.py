"""Greedy: the module whose own step takes away most in a unit of time.

It passes by a module that takes away little itself and stands before one that takes away much, which
:mod:`engine.overload.policies.chain` does not.
"""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.by_key import ByKey
from engine.overload.policies.ready_heap import Key
from engine.overload.scheduled_module import ScheduledModule


class Greedy(ByKey):
    """Ties go to the batch that came first."""

    name: ClassVar[str] = "greedy"

    def key(self, module: ScheduledModule) -> Key:
        return -module.own_slope, module.queue[0].origin
