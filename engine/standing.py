"""A standing query: what was registered, what it means, and where its matches are kept."""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.expressions import Expression
from engine.language.parameters import text_of
from engine.language.query import Query
from engine.language.templates import Meaning
from engine.maintenance import Maintenance
from engine.model.source import SourceName
from engine.model.step import Position, Registration
from engine.operators.maintained.kept_aggregate import KeptAggregate


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """Immutable: a change makes another.

    meaning: what the registered text means, mostly a template that it shares with texts that differ in
    constants; the tree of the query is built when it is asked for, and the last ones are kept.
    slots: (slot, generation) of each of ``query.predicates()`` in the Query SteM; empty where no matches are
    kept. partials: of an eager aggregate, what its answers are read from.
    """

    registration: Registration
    meaning: Meaning
    born: Position
    maintenance: Maintenance
    paused: bool = False
    slots: tuple[tuple[int, int], ...] = ()
    partials: KeptAggregate | None = None

    @property
    def query_id(self) -> str:
        return self.registration.query_id

    @property
    def query(self) -> Query:
        """The bound query. O(1) where it was asked for lately, else O(its size), tens of microseconds."""
        return self.meaning.query(text_of(self.registration))

    @property
    def source(self) -> SourceName:
        """``query.source``, without the query."""
        return self.meaning.source

    @property
    def keeps_matches(self) -> bool:
        return self.maintenance != "none" and not self.paused

    @property
    def keeps_answer(self) -> bool:
        return self.maintenance == "eager" and not self.paused

    @property
    def scan_slot(self) -> int | None:
        """Where the matches of its scan's predicate are; None where it has none."""
        predicate = self.query.scan.predicate
        return None if predicate is None else self.slot_of(predicate)

    def slot_of(self, predicate: Expression) -> int | None:
        """Where the matches of one of its predicates are; None where they are not kept."""
        if self.slots:
            for known, (slot, _) in zip(self.query.predicates(), self.slots, strict=True):
                if known is predicate or known == predicate:
                    return slot
        return None
