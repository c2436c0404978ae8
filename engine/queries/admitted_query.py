"""A query on its way into the engine: its registration and what its text means."""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.query import Query
from engine.language.templates import BoundTemplate, FixedQuery, Read, Template
from engine.model.expressions import Expression
from engine.model.maintenance import QueryOptions
from engine.model.source import SourceName
from engine.model.step import Position, Registration
from engine.standing.query import Allotted, StandingQuery
from engine.stems.factors import Factors, compared


@dataclass(frozen=True, slots=True)
class AdmittedQuery:
    """registration: as it came. read: its text, bound; of a query. template: what to keep of that. born:
    after which step it stands. allotted: where it is given less than its text asks for; read and template are
    then those of what stands for it.
    """

    registration: Registration
    read: Read
    template: BoundTemplate
    born: Position
    allotted: Allotted | None = None

    @classmethod
    def of(cls, registration: Registration, read: Read, born: Position) -> AdmittedQuery:
        template = read.template
        assert template is not None
        if template.emits or template.summaries:  # whoever tells its changes, or finds its rows, holds it
            template = FixedQuery.of(read.query)
        return cls(registration, read, template, born)

    @classmethod
    def again(cls, standing: StandingQuery, registration: Registration | None = None) -> AdmittedQuery:
        """A query that stands, as it is; registration: with these options."""
        return cls(
            registration or standing.registration,
            Read.of(standing.query),
            standing.template,
            standing.born,
            standing.allotted,
        )

    @property
    def query_id(self) -> str:
        return self.registration.query_id

    @property
    def prefers(self) -> bool:
        """Whether it has a preference. O(1)."""
        return bool(self.template.summaries)

    @property
    def query(self) -> Query:
        """The tree. O(its size) where nobody asked for it yet."""
        return self.read.query

    @property
    def like(self) -> Query:
        """:meth:`engine.language.templates.BoundTemplate.like`."""
        return self.template.like(self)

    def predicates(self) -> tuple[tuple[SourceName, Expression | Factors], ...]:
        """As :meth:`engine.language.query.Query.predicates`, taken apart where no tree is needed for that;
        none of a query with a preference, of which no matches are kept.
        """
        if self.prefers:
            return ()
        template, values = self.template, self.read.values
        if isinstance(template, Template) and template.selection is not None and values is not None:
            if not template.selection.comparisons:
                return ()
            taken = compared(template.selection.comparisons, values)
            if taken is not None:
                return ((template.sources[0], taken),)
        return self.query.predicates()


def needs_matches(coming: AdmittedQuery) -> bool:
    """Whether a query that comes needs all its matches at once, however dear they are."""
    if coming.prefers:
        return False
    return coming.template.emits or QueryOptions.of(coming.registration.options).maintenance == "eager"
