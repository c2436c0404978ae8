"""How much work the allocation of precision does, and when it is done."""

from __future__ import annotations

from dataclasses import dataclass

from engine.overload.precision.part_solver import (
    QUICK,
    WHOLE,
    Effort,
)


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """rounds, settled: when the split is done: after so many, or when the total moves by less than this share
    of it. together_max: up to so many free variables are solved as one part. polished_max: up to so many are
    solved as one part from what the split gave, which divides no part well whose loss is concave. gain_min:
    by this share of the last loss a new allocation must be better, or the last stays (hysteresis).
    """

    rounds: int = 10
    settled: float = 1e-3
    together_max: int = 8
    polished_max: int = 24
    gain_min: float = 0.02
    effort: Effort = WHOLE
    effort_many: Effort = QUICK


DEFAULT = SolverSettings()
