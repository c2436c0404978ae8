"""What the allocation of memory did. Written on the event loop, read by any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tureen.errors import PrecisionUnreachable


@dataclass(slots=True)
class AllocationCounts:
    """rounds: times that it was solved; steps: allotments that were made; given_less: queries that are given
    less by the broker now; solve_s: what the last time took; failed: times that the solver failed, and
    allotments that were refused. unreachable: queries whose bounds are not kept, with what they may expect.
    """

    rounds: int = 0
    steps: int = 0
    given_less: int = 0
    solve_s: float = 0.0
    failed: int = 0
    unreachable: Mapping[str, PrecisionUnreachable] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """As ``/status`` shows it."""
        return {
            "queries": self.given_less,
            "rounds": self.rounds,
            "steps": self.steps,
            "failed": self.failed,
            "solve_ms": round(1_000 * self.solve_s, 1),
            "unreachable": sorted(self.unreachable),
        }
