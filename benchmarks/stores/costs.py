"""The clock: what a row visited and a row inserted cost, in units.

The paper's figure 9 fits its rates only if microseconds there and milliseconds elsewhere are one unit. So a
mean gap of 100 ms is 100 units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STRUCTURES = ("t1", "t2", "t3", "t4")
"""No summary; time zones; time zones and value buckets; zones that follow the stream and value buckets."""

_PAPER = {"t1": 2.0, "t2": 2.5, "t3": 3.25, "t4": 3.75}


@dataclass(frozen=True, slots=True)
class Costs:
    """Units. insertion: by structure; hash chains and an exact index are as t1. evaluation: of a row for one
    query that a stream is fed to.
    """

    visit: float = 2.5
    insertion: Mapping[str, float] = field(default_factory=lambda: _PAPER)
    evaluation: float = 1.25


PAPER = Costs()
