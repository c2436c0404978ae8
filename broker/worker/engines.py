"""What all engines of a worker are made with: limits, functions for SQL, measured costs."""

from __future__ import annotations

from dataclasses import dataclass

from engine.engine import Engine
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.limits import Limits
from engine.maintenance import Costs
from engine.persistence import StateSource


@dataclass(frozen=True, slots=True)
class Engines:
    """Makes engines alike."""

    limits: Limits
    functions: FunctionCatalogue = BUILT_IN
    costs: Costs | None = None

    def fresh(self) -> Engine:
        """One that holds nothing."""
        return Engine(self.limits, functions=self.functions, costs=self.costs)

    def restored(self, stored: StateSource) -> Engine:
        """One as stored. Raises as :meth:`engine.engine.Engine.restore`."""
        return Engine.restore(stored, self.limits, functions=self.functions, costs=self.costs)
