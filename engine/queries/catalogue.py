"""Streams, views and summaries by name, how they come and go, and what texts mean against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from engine.eddy.eddy import Timer
from engine.language.bind.environment import Summaries as SummaryDefinitions
from engine.language.functions import FunctionCatalogue
from engine.language.parameters import text_of
from engine.language.query import Query
from engine.language.statements import parse
from engine.language.templates import Read, Templates
from engine.model.answer import Lost
from engine.model.capacities import USUAL, Capacities
from engine.model.limits import Limits
from engine.model.persistence import StateSink
from engine.model.source import Derived, SourceName, Stream
from engine.model.summary import SummaryDefinition
from engine.model.usage import Stopwatch
from engine.queries.definitions import Create, Decision, Definitions, Drop, decide, nobody
from engine.queries.summaries import Summaries, beside, refuse_unclear
from engine.sources.references import ReferenceChecks
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from tureen.errors import TureenError, UnknownSource


class Catalogue:
    """A name is a stream's or a view's. Whatever something reads stays as it is until that is gone."""

    def __init__(
        self,
        limits: Limits,
        functions: FunctionCatalogue,
        timer: Timer | None,
        watch: Stopwatch | None = None,
        capacities: Capacities = USUAL,
    ) -> None:
        """timer, watch, capacities: the engine's, for sources."""
        self.sources: dict[str, Source] = {}
        self.derived: dict[str, Derived] = {}
        self.references = ReferenceChecks(self.sources)
        """Constraints among them."""
        self.summaries = Summaries(self.sources)
        self.functions = functions
        self._new_source = partial(Source, timer=timer, watch=watch, capacities=capacities)
        self._limits = limits
        self._unsaved: set[str] = set()
        self._dropped: set[str] = set()
        self.changed()

    @property
    def definitions(self) -> Mapping[str, Stream | Derived]:
        """By name."""
        return {name: source.stream for name, source in self.sources.items()} | self.derived

    def changed(self) -> None:
        """Something came or went: texts may mean something else."""
        summaries = self.summaries.definitions
        self.templates = Templates(self.definitions, self._limits, self.functions, summaries)
        self._learnt: dict[str, Read] = {}

    def read(self, text: str) -> Read:
        """What a text means. Raises QueryError, LimitExceeded. O(1) for one that was learnt."""
        return self._learnt.get(text) or self.templates.read(text)

    def learn(self, texts: Iterable[tuple[Read, Mapping[str, Stream | Derived], SummaryDefinitions]]) -> None:
        """Take over queries that were bound elsewhere, each against a catalogue and its summaries, in the
        place of those that were learnt before. Those that read or use what is defined in another way here are
        passed over.
        """
        self._learnt = {}
        known, summarised = self.definitions, self.templates.summaries
        of: Mapping[str, Stream | Derived] | None = None
        same: dict[str, bool] = {}
        for read, against, summaries in texts:
            assert read.template is not None
            if any(summarised.get(name) != summaries.get(name) for name in read.template.summaries):
                continue
            if against is not of:
                of, same = against, {}
            for name in (*read.template.sources, *read.template.uses):
                if name not in same:
                    same[name] = known.get(name) == against.get(name)
                if not same[name]:
                    break
            else:
                self._learnt[read.text] = read

    def refuse_if_unclear(self, definition: SummaryDefinition, queries: Iterable[StandingQuery]) -> None:
        """Raise SummaryConflict where a second summary of a column would leave it open which of the two a
        standing query means by SUMMARY: its text could not be bound again. O(queries).
        """
        standing = {name: one.definition for name, one in self.summaries.standing.items()}
        others = set(beside(definition, standing))
        texts = [
            text_of(one.registration) for one in queries if not others.isdisjoint(one.template.summaries)
        ]
        if texts:
            summaries = self.summaries.definitions_with(definition)
            templates = Templates(self.definitions, self._limits, self.functions, summaries)
            refuse_unclear(definition, standing, texts, templates.read)

    def create(self, stream: Stream, sql: str, clock_ms: int | None = None) -> None:
        """A stream comes; one of this very definition may be there. clock_ms: of the step, where it is known.

        Raises SourceConflict.
        """
        if decide(stream.name, Create(stream), self._standing(nobody)) is Decision.SAME:
            return
        added = self.sources[stream.name] = self._new_source(
            stream,
            sql,
            self._limits,
        )
        added.lost = Lost(since_ms=clock_ms)
        self.changed()

    def derive(self, derived: Derived, readers: Callable[[str], int] = nobody) -> None:
        """A view comes, or takes another one's place. readers: how many queries read a stream or a view.

        Raises SourceConflict, QueryError, LimitExceeded.
        """
        name = derived.name
        if decide(name, Create(derived, replaces=True), self._standing(readers)) is Decision.SAME:
            return
        others = {known: other for known, other in self.definitions.items() if known != name}
        parse(derived.sql, others, self._limits, functions=self.functions)
        self.derived[name] = derived
        self._unsaved.add(name)
        self.changed()

    def drop(self, name: str, readers: Callable[[str], int] = nobody) -> None:
        """A stream goes with its rows, or a view. readers: as of :meth:`derive`.

        Raises UnknownSource, SourceConflict.
        """
        if decide(name, Drop(), self._standing(readers)) is Decision.ABSENT:
            raise UnknownSource(name)
        if self.derived.pop(name, None) is not None:
            self._unsaved.add(name)
        else:
            self.sources.pop(SourceName(name)).let_go()
            self._dropped.add(name)
        self.changed()

    def views_of(self, name: str) -> Iterator[str]:
        """The other views that read a stream or a view."""
        return (one.name for one in self.derived.values() if one.name != name and self._reads(one, name))

    def _standing(self, readers: Callable[[str], int]) -> Definitions:
        """What stands, with how many queries read it. What constraints refer to is held by the node: a
        shard drops what it was lent in the order in which it is told.
        """
        return Definitions(
            self.definitions,
            {name: one.definition for name, one in self.summaries.standing.items()},
            readers=readers,
            views=self.views_of,
        )

    def _reads(self, view: Derived, name: str) -> bool:
        """Whether a view reads this. One that cannot be understood now, since a function is missing, reads
        whatever its text mentions.
        """
        try:
            meant = self.templates.statement(view.sql)
        except TureenError:
            return f'"{name}"' in view.sql or name in re.findall(r"\w+", view.sql.lower())
        return isinstance(meant, Query) and name in (*meant.sources, *meant.uses)

    # --- the store's side -------------------------------------------------------------------------

    def save(self, sink: StateSink) -> None:
        """Hand over what came and went since the last save; :meth:`saved` confirms it."""
        for name in self._dropped:  # first: a stream of that name may have come again
            sink.drop_source(SourceName(name))
        for name in self._unsaved:
            if name in self.derived:
                sink.put_derived(self.derived[name])
            else:
                sink.drop_derived(SourceName(name))

    def saved(self) -> None:
        """The last save is durable."""
        self.summaries.saved()
        self._dropped.clear()
        self._unsaved.clear()
