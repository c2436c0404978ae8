"""A standing query: what was registered, what it means, and where its matches are kept."""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.expressions import Expression
from engine.language.query import Query
from engine.maintenance import Maintenance
from engine.model.step import Position, Registration


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """Immutable: a change makes another.

    slots: (slot, generation) of each of ``query.predicates()`` in the Query SteM; empty where no matches are
    kept.
    """

    registration: Registration
    query: Query
    born: Position
    maintenance: Maintenance
    paused: bool = False
    slots: tuple[tuple[int, int], ...] = ()

    @property
    def query_id(self) -> str:
        return self.registration.query_id

    @property
    def keeps_matches(self) -> bool:
        return self.maintenance != "none" and not self.paused

    def slot_of(self, predicate: Expression) -> int | None:
        """Where the matches of one of its predicates are; None where they are not kept."""
        if self.slots:
            for known, (slot, _) in zip(self.query.predicates(), self.slots, strict=True):
                if known == predicate:
                    return slot
        return None
