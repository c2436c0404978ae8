"""A standing query: what was registered, what it means, and where its matches are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.language.expressions import Expression
from engine.language.query import Query
from engine.model.step import Position, Registration

Maintenance = Literal["none", "lazy", "eager"]


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """Immutable: a change makes another.

    maintenance: ``none``: evaluated when asked; ``lazy``: matches are kept, the rest is done when asked;
    ``eager``: the answer is kept. slots: (slot, generation) of each of ``query.predicates()`` in the Query
    SteM; empty where no matches are kept.
    """

    registration: Registration
    query: Query
    born: Position
    maintenance: Maintenance
    slots: tuple[tuple[int, int], ...]
    paused: bool = False

    @property
    def query_id(self) -> str:
        return self.registration.query_id

    def slot_of(self, predicate: Expression) -> int | None:
        """Where the matches of one of its predicates are; None where they are not kept."""
        for known, (slot, _) in zip(self.query.predicates(), self.slots, strict=False):
            if known == predicate:
                return slot
        return None
