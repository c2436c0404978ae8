"""The policies there are, by name."""

from __future__ import annotations

from collections.abc import Callable

from engine.overload.policies.chain import Chain
from engine.overload.policies.chain_deadline import ChainDeadline
from engine.overload.policies.fifo import FifoScheduling
from engine.overload.policies.greedy import Greedy
from engine.overload.policies.round_robin import RoundRobin
from engine.overload.policies.scheduling_policy import SchedulingPolicy
from engine.overload.policies.weighted_fair import WeightedFair

SCHEDULING_POLICIES: dict[str, Callable[[], SchedulingPolicy]] = {
    one.name: one for one in (FifoScheduling, RoundRobin, Greedy, Chain, ChainDeadline, WeightedFair)
}
"""Those that can be set while running; the first is the default."""
