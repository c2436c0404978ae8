"""The routing policies that can be set while running; the first is the default."""

from __future__ import annotations

from collections.abc import Callable

from engine.eddy.a_greedy import AGreedy
from engine.eddy.policies import FixedOrder, Optimal, Random, RoutingPolicy, Tickets

POLICIES: dict[str, Callable[[], RoutingPolicy]] = {
    "tickets": Tickets,
    "random": Random,
    "fixed": FixedOrder,
    "optimal": Optimal,
    "a-greedy": AGreedy,
}

ABOUT = (
    "first the module that ends most rows for its cost by a lottery (tickets) or always (optimal), the same "
    "with what others let pass counted in (a-greedy), as they came (fixed), any (random)"
)
"""What each does."""
