"""Summaries by name: how they come, change and go, and which of them texts may name.

A summary has a name of its own, whatever streams and views are called. It belongs to one stream. While a
query uses it, it goes only where that is forced: its definition is then *absent*, so that the texts of such
queries can still be bound when they come back from the store, but nothing that comes anew may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from engine.language.summary_text import summary_text
from engine.model.persistence import StateSink, StateSource
from engine.model.source import SourceName, Stream
from engine.model.state_tree import Tree, as_tree, of_tree
from engine.model.summary import SummaryDefinition, SummaryName, SummarySettings
from engine.model.types import Type
from engine.queries.definitions import Create, Decision, Definitions, Drop, altered, decide
from engine.sources.source import Source
from engine.summaries.summary import Summary
from tureen.errors import (
    NotSupported,
    SummaryConflict,
    TureenError,
    UnknownColumn,
    UnknownSource,
    UnknownSummary,
)

Text = TypeVar("Text")

PARTS = "summary/"
"""What the names of their parts in the store begin with."""


@dataclass(frozen=True, slots=True)
class NamedSummary:
    """A summary that stands, or is absent. sql: the statement that it was made by."""

    definition: SummaryDefinition
    sql: str


@dataclass(frozen=True, slots=True)
class _Stored:
    """As the store has one. counts: a tree; None: to be counted anew, from the retained rows."""

    definition: SummaryDefinition
    sql: str
    counts: Any = None
    is_absent: bool = False


class Summaries:
    """standing: by name. absent: dropped while queries used them, by name; a name is in one of the two."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        """sources: of the catalogue; each has its summaries at work."""
        self.standing: dict[SummaryName, NamedSummary] = {}
        self.absent: dict[SummaryName, NamedSummary] = {}
        self._sources = sources
        self._changed: set[SummaryName] = set()
        """Since the last save."""
        self._listing: dict[SummaryName, bool] = {}
        """Whether each kept lists of frequent values at the last save."""
        self._stored: dict[SummaryName, _Stored] = {}
        """What was read of a store, until the rows are back."""

    @property
    def definitions(self) -> Mapping[SummaryName, SummaryDefinition]:
        """What texts of queries that stand may name: absent ones too, but for those whose attribute another
        one summarises now.
        """
        return self._named({name: one.definition for name, one in self.standing.items()})

    def definitions_with(self, coming: SummaryDefinition) -> Mapping[SummaryName, SummaryDefinition]:
        """Returns what :attr:`definitions` will be once one more summary stands."""
        standing = {name: one.definition for name, one in self.standing.items()}
        return self._named({**standing, coming.name: coming})

    def _named(self, named: dict[SummaryName, SummaryDefinition]) -> Mapping[SummaryName, SummaryDefinition]:
        """named: those that stand; absent ones come in."""
        taken = {(one.stream, one.attribute) for one in named.values()}
        for name, one in self.absent.items():
            if name not in named and (one.definition.stream, one.definition.attribute) not in taken:
                named[name] = one.definition
        return named

    def on(self, stream: str) -> list[SummaryName]:
        """The names of those of a stream that stand, sorted."""
        return sorted(name for name, one in self.standing.items() if one.definition.stream == stream)

    def require(self, names: Iterable[SummaryName]) -> None:
        """Raise UnknownSummary for the first that does not stand."""
        for name in names:
            if name not in self.standing:
                hint = "make it with CREATE SUMMARY first"
                raise UnknownSummary(name, f"there is no summary named {name!r}", hint=hint)

    def create(self, definition: SummaryDefinition, sql: str) -> bool:
        """A summary comes, as if it had always been there; whether it was not there. One of this very
        definition may be.

        Raises UnknownSource, UnknownColumn, NotSupported, SummaryConflict. O(retained rows).
        """
        name = definition.name
        if decide(name, Create(definition), self._definitions()) is Decision.SAME:
            return False
        source = self._sources.get(definition.stream)
        if source is None:
            raise UnknownSource(definition.stream, hint="make it with CREATE STREAM first")
        check_summarised(definition, source.stream)
        source.summarise(definition)
        self.absent.pop(name, None)
        self.standing[name] = NamedSummary(definition, sql)
        self._changed.add(name)
        return True

    def alter(self, name: SummaryName, settings: SummarySettings) -> None:
        """Give a summary other settings, and the statement that makes one like it. Raises UnknownSummary,
        NotSupported.
        """
        self.require([name])
        there = self.standing[name]
        check_alterable(there.definition.settings, settings)
        definition = replace(there.definition, settings=settings)
        self._sources[definition.stream].summarised.alter(definition)
        self.standing[name] = NamedSummary(definition, summary_text(definition))
        self._changed.add(name)

    def drop(self, name: SummaryName, users: int, *, forced: bool) -> None:
        """A summary goes. users: how many queries use it. Raises UnknownSummary, SummaryConflict."""
        self.require([name])
        decide(name, Drop("summary", forced=forced), self._definitions(users))
        there = self.standing.pop(name)
        self._sources[there.definition.stream].summarised.forget(name)
        if users:
            self.absent[name] = there
        self._changed.add(name)

    def _definitions(self, users: int = 0) -> Definitions:
        """users: how many queries use the summary in question."""
        standing = {name: one.definition for name, one in self.standing.items()}
        return Definitions(summaries=standing, users=lambda _: users)

    def forget_absent(self, used: Collection[SummaryName]) -> bool:
        """Forget the absent summaries that no query uses; whether there were any. O(absent)."""
        gone = [name for name in self.absent if name not in used]
        for name in gone:
            del self.absent[name]
        self._changed.update(gone)
        return bool(gone)

    # --- the store's side -------------------------------------------------------------------------

    def save(self, sink: StateSink, moved: Iterable[SourceName]) -> None:
        """Hand over what changed since the last save, and the summaries of sources that moved."""
        listing = {name: self._at_work(name).lists_values for name in self.standing}
        listed = (name for name, lists in listing.items() if lists != self._listing.get(name))
        names = self._changed.union(listed, *(self.on(source) for source in moved))
        self._listing = listing
        for name in sorted(names):
            if name in self.standing or name in self.absent:
                sink.put_part(PARTS + name, self._tree(name))
            else:
                sink.drop_part(PARTS + name)

    def copy(self, sink: StateSink) -> None:
        """Hand over all there are."""
        for name in (*self.standing, *self.absent):
            sink.put_part(PARTS + name, self._tree(name))

    def saved(self) -> None:
        """The last save is durable."""
        self._changed.clear()

    def read(self, store: StateSource) -> None:
        """Those that a store has, by name; the sources are there, without their rows."""
        self._stored = {
            state.definition.name: state
            for _, tree in store.state_parts(PARTS)
            for state in [of_tree(_Stored, tree)]
        }
        for name, state in self._stored.items():
            into = self.absent if state.is_absent else self.standing
            into[name] = NamedSummary(state.definition, state.sql)

    def restore(self) -> None:
        """The rows of the sources are back: so are the summaries that were read."""
        for name, state in self._stored.items():
            if name in self.standing:
                source = self._sources[state.definition.stream]
                source.restore_summary(state.definition, state.counts)
        self._stored = {}

    def _tree(self, name: SummaryName) -> Tree:
        there = self.standing.get(name)
        if there is None:
            absent = self.absent[name]
            return as_tree(_Stored(absent.definition, absent.sql, is_absent=True))
        return as_tree(_Stored(there.definition, there.sql, as_tree(self._at_work(name).state())))

    def _at_work(self, name: SummaryName) -> Summary:
        """One that stands."""
        return self._sources[self.standing[name].definition.stream].summarised.at_work[name]


def stored_definitions(store: StateSource) -> Mapping[SummaryName, SummaryDefinition]:
    """Returns the definitions of the summaries in a store that texts of its queries may name."""
    found = Summaries({})
    found.read(store)
    return found.definitions


def uncounted(tree: Tree) -> Tree:
    """A summary as the store has it, to be counted anew from the rows that there are."""
    return {**tree, "counts": None}


def beside(coming: SummaryDefinition, standing: Mapping[SummaryName, SummaryDefinition]) -> list[SummaryName]:
    """The other summaries of the column that one which comes summarises, sorted."""
    return sorted(
        name
        for name, one in standing.items()
        if name != coming.name and (one.stream, one.attribute) == (coming.stream, coming.attribute)
    )


def refuse_unclear(
    coming: SummaryDefinition,
    standing: Mapping[SummaryName, SummaryDefinition],
    texts: Iterable[Text],
    bind: Callable[[Text], object],
) -> None:
    """Raise SummaryConflict where texts of queries that use the other summaries of its column could not be
    bound any more once it stands: they say SUMMARY. bind: a text against what stands then.
    """
    unclear = 0
    for text in texts:
        try:
            bind(text)
        except TureenError:
            unclear += 1
    if unclear:
        others = beside(coming, standing)
        raise SummaryConflict(
            f"{unclear} queries say SUMMARY of {coming.stream} ({coming.attribute}), which would then be "
            f"{' or '.join(sorted((coming.name, *others)))}",
            hint=f"write {others[0]} in place of SUMMARY in their texts first, by ALTER QUERY",
        )


def check_summarised(definition: SummaryDefinition, stream: Stream) -> Type:
    """The type of the column that a definition summarises, of the stream that is there.

    Raises NotSupported for a table, UnknownColumn, where the definition was bound against another stream of
    this name.
    """
    if stream.is_table:
        raise NotSupported(f"{stream.name} is a table", hint="a summary is of a stream")
    place = stream.schema.index(definition.attribute)
    if place is None:
        raise UnknownColumn(definition.attribute, hint=f"DESCRIBE {stream.name} lists its columns")
    return stream.schema.field(place).type


def check_alterable(before: SummarySettings, after: SummarySettings) -> None:
    """Raise NotSupported where settings differ in what is for life."""
    if altered(before, after) != after:
        raise NotSupported(
            "only theta and zone_rows_min of a summary change while it stands",
            hint="DROP SUMMARY, and create it again with the other settings",
        )
