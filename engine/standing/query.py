"""A standing query: what was registered, what it means, and where its matches are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from engine.language.parameters import text_of
from engine.language.query import Query
from engine.language.templates import BoundTemplate
from engine.model.allotment import Allotment
from engine.model.expressions import Expression
from engine.model.maintenance import Maintenance, PutOff, QueryOptions
from engine.model.source import SourceName
from engine.model.step import Position, Registration
from engine.model.tolerance import WEIGHT_DEFAULT, Tolerance
from engine.operators.maintained.kept_aggregate import KeptAggregate
from engine.operators.scan import ConditionErrors, ScanAt
from engine.stems.match_place import Place, slot_at

INACTIVE_WEIGHT = 1e-6
"""The weight of a paused query (STREAM, section 5.3: it is planned for, and costs next to nothing)."""

SetKey = tuple[SourceName, ...]
"""Names of sources, each once, sorted."""


@dataclass(frozen=True, slots=True)
class SampledAggregates:
    """What the errors of aggregates over a sample are measured by. query: of each group, for each call, how
    many values it has, their sum, and the sum of their squares. share: of the rows that are kept, below 1.
    functions: of the calls.
    """

    query: Query
    share: float
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Allotted:
    """A query that is given less than its text asks for. asked: what the text means. since: the step that
    gave it. unscaled: columns of aggregates that nothing was made good of
    (:mod:`engine.overload.reduced_query`). measured: by what the errors of the others are told from the rows
    that are there; None: they are not.
    """

    asked: Query
    allotment: Allotment
    since: Position
    unscaled: tuple[str, ...] = ()
    measured: SampledAggregates | None = None


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """Immutable: a change makes another.

    template: what it answers: what the registered text means, or what stands for that where it is given less,
    as ``allotted`` then says. Mostly a template that it shares with texts that differ in
    constants; the tree of the query is built when it is asked for, and the last ones are kept.
    slots: of each of ``query.predicates()`` the place in its source's Query SteM; empty where no matches are
    kept. partials: of an eager aggregate, what its answers are read from. put_off: why it is answered
    lazily, though its answer is to be kept.
    """

    registration: Registration
    template: BoundTemplate
    born: Position
    maintenance: Maintenance
    paused: bool = False
    slots: tuple[Place, ...] = ()
    partials: KeptAggregate | None = None
    allotted: Allotted | None = None
    put_off: PutOff | None = None

    @property
    def query_id(self) -> str:
        return self.registration.query_id

    @property
    def query(self) -> Query:
        """The bound query. O(1) where it was asked for lately, else O(its size), tens of microseconds."""
        return self.template.query(text_of(self.registration))

    @property
    def like(self) -> Query:
        """:meth:`engine.language.templates.BoundTemplate.like`."""
        return self.template.like(self)

    @property
    def asked(self) -> Query:
        """The query that its text asks for; differs from ``query`` where it is given less."""
        return self.query if self.allotted is None else self.allotted.asked

    @property
    def sources(self) -> tuple[SourceName, ...]:
        """``query.sources``, without the query."""
        return self.template.sources

    @property
    def set_key(self) -> SetKey:
        """The set of sources that it stands over."""
        return set_key(self.template.sources)

    @property
    def weight(self) -> float:
        """How much it counts in every decision about what is scarce, above 0."""
        return INACTIVE_WEIGHT if self.paused else self.asked_weight

    @property
    def asked_weight(self) -> float:
        """The weight of the query while it runs: as its options say, else its text."""
        asked = self.registration.weight
        if asked is None:
            asked = self.template.weight
        return WEIGHT_DEFAULT if asked is None else asked

    @property
    def tolerance(self) -> Tolerance:
        """What it allows: each part as its options say, else its text."""
        return self.template.tolerance.under(QueryOptions.of(self.registration.options).tolerance)

    @property
    def is_tolerant(self) -> bool:
        """Whether its answer may be less than exact: by its tolerance, or by DOWN TO in its text. O(1)."""
        return bool(self.tolerance) or self.template.has_down_to

    @property
    def holds_rows(self) -> bool:
        """Whether rows are kept for its windows."""
        return not (self.paused and QueryOptions.of(self.registration.options).release)

    @property
    def prefers(self) -> bool:
        """Whether it has a preference: its answer is made of what its group found (:mod:`engine.promising`).
        O(1).
        """
        return bool(self.template.summaries)

    @property
    def keeps_matches(self) -> bool:
        """Whether matches of its predicates are kept: never of one with a preference."""
        return self.maintenance != "none" and not self.paused and not self.prefers

    @property
    def keeps_answer(self) -> bool:
        return self.maintenance == "eager" and not self.paused

    @property
    def is_only_asked(self) -> bool:
        """Whether its answer is worked out when it is asked for, from matches that are kept, and its text has
        nobody told of changes.
        """
        return self.maintenance == "lazy" and self.keeps_matches and not self.template.emits

    def places(self) -> Iterator[tuple[SourceName, tuple[int, int]]]:
        """The source and the (slot, generation) of each predicate whose matches are kept."""
        if len(self.sources) == 1:
            for place in self.slots:
                yield self.sources[0], (slot_at(place), place >> 32)
        elif self.slots:
            for (source, _), place in zip(self.query.predicates(), self.slots, strict=True):
                yield source, (slot_at(place), place >> 32)

    @property
    def scan_slot(self) -> int | None:
        """Where the matches of its scan's predicate are; None where it has none."""
        scan = self.query.scan
        return None if scan.predicate is None else self.slot_of(scan.source, scan.predicate)

    def slot_of(self, source: SourceName, predicate: Expression) -> int | None:
        """Where the matches of one of its predicates are; None where they are not kept."""
        if self.slots:
            for (name, known), place in zip(self.query.predicates(), self.slots, strict=True):
                if name == source and (known is predicate or known == predicate):
                    return slot_at(place)
        return None

    def at(
        self, sources: Mapping[SourceName, ScanAt], errors: ConditionErrors | None = None
    ) -> dict[SourceName, ScanAt]:
        """The sources as this query sees them: with its slots. errors: counts failed conditions."""
        return {name: at.with_slots(partial(self.slot_of, name), errors) for name, at in sources.items()}


def set_key(sources: tuple[SourceName, ...]) -> SetKey:
    """Sources whatever the order in which a text names them."""
    return sources if len(sources) == 1 else tuple(sorted(sources))
