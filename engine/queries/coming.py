"""A query on its way into the engine: its registration and what its text means."""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.expressions import Expression
from engine.language.query import Query
from engine.language.templates import FixedQuery, Meaning, Read, Template
from engine.model.source import SourceName
from engine.model.step import Position, Registration
from engine.stems.factors import Factors, compared


@dataclass(frozen=True, slots=True)
class Coming:
    """registration: as it came. read: its text, bound; of a query. meaning: what to keep of that. born: after
    which step it stands.
    """

    registration: Registration
    read: Read
    meaning: Meaning
    born: Position

    @classmethod
    def of(cls, registration: Registration, read: Read, born: Position) -> Coming:
        meaning = read.meaning
        assert meaning is not None
        if meaning.emits:  # whoever tells its changes holds the query all the time
            meaning = FixedQuery(read.query)
        return cls(registration, read, meaning, born)

    @property
    def query(self) -> Query:
        """The tree. O(its size) where nobody asked for it yet."""
        return self.read.query

    @property
    def like(self) -> Query:
        """A query like it in everything but constants; where one is known, no tree is built."""
        meaning = self.meaning
        if isinstance(meaning, Template) and meaning.selection is not None:
            return meaning.selection.like
        return self.query

    def predicates(self) -> tuple[tuple[SourceName, Expression | Factors], ...]:
        """As :meth:`engine.language.query.Query.predicates`, taken apart where no tree is needed for that."""
        meaning, values = self.meaning, self.read.values
        if isinstance(meaning, Template) and meaning.selection is not None and values is not None:
            if not meaning.selection.comparisons:
                return ()
            taken = compared(meaning.selection.comparisons, values)
            if taken is not None:
                return ((meaning.sources[0], taken),)
        return self.query.predicates()
