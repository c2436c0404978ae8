"""What is told of the modules that an eddy routes rows through."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModuleStatistics:
    """One module, since it came.

    queries: how many it serves. tickets: what the policy thinks of it now, the more the sooner; None: no
    choice of the policy. visits: of batches. given, killed: rows, and those of them that none of its queries
    wanted afterwards (a join may let out more than went in: less than nothing is killed). cost: nanoseconds,
    measured where the eddy has a timer and a visit is long enough, otherwise what its work is taken to be.
    errors: of the rows given, those for which its predicate is an error, as where a user's function raises.
    """

    name: str
    queries: int
    tickets: float | None
    visits: int
    given: int
    killed: int
    cost: float
    errors: int = 0
