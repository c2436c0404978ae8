"""What operators keep, by the strategy of the queries that they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.model.maintenance import Strategy


@dataclass(frozen=True, slots=True)
class StrategyState:
    """queries: that are followed. nbytes: of the state of their operators; one that serves several strategies
    counts for the first of nt, direct and upa. entered: rows that came into answers of these operators, of
    those that count it: negations; premature: how many of them left before the rows that they are made of.
    """

    queries: int = 0
    nbytes: int = 0
    entered: int = 0
    premature: int = 0

    def __add__(self, other: StrategyState) -> StrategyState:
        return StrategyState(
            self.queries + other.queries,
            self.nbytes + other.nbytes,
            self.entered + other.entered,
            self.premature + other.premature,
        )

    @property
    def premature_share(self) -> float | None:
        """None where nothing came."""
        return self.premature / self.entered if self.entered else None


ByStrategy = Mapping[Strategy, StrategyState]


def summed(parts: Iterable[ByStrategy]) -> ByStrategy:
    """Sums up the state by strategy; strategies of no query are left out."""
    found: dict[Strategy, StrategyState] = {}
    for part in parts:
        for strategy, state in part.items():
            found[strategy] = found.get(strategy, StrategyState()) + state
    return found
