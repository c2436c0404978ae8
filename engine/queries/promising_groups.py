"""Which group a query with a preference belongs to, and how groups are made and come back from a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from engine.language.query import Query
from engine.model.limits import Limits
from engine.model.source import Derived, SourceName, Stream
from engine.model.state_tree import Tree, of_tree
from engine.model.summary import SummaryName
from engine.operators.scan import ScanAt
from engine.promising.group import GroupKey, Member, PromisingGroup
from engine.promising.join_members import join_key
from engine.promising.join_state import JoinState
from engine.promising.joins import PromisingJoin
from engine.promising.selections import PromisingSelection, SelectionState
from engine.sources.source import Source
from engine.summaries.summary import Summary


def key_of(query: Query, widths: Mapping[SourceName, int]) -> GroupKey:
    """widths: how many columns each source has. Raises NotSupported: no group finds rows for it."""
    preference, sources = query.preference, tuple(scan.source for scan in query.scans())
    assert preference is not None
    if len(sources) > 1:
        return join_key(query, widths)
    return GroupKey.of("selection", sources, None, preference)


def require_group(query: Query, catalogue: Mapping[str, Stream | Derived]) -> None:
    """Raise NotSupported for a query with a preference that no group finds rows for."""
    streams = {name: catalogue[name] for name in query.sources}
    widths = {SourceName(name): len(one.schema) for name, one in streams.items() if isinstance(one, Stream)}
    key_of(query, widths)


def new_group(key: GroupKey, summaries: Mapping[SummaryName, Summary], limits: Limits) -> PromisingGroup:
    """A group that found nothing yet. summaries: those of the key's priorities."""
    made = PromisingJoin if key.kind == "join" else PromisingSelection
    return made(key, summaries, limits)


class GroupFactory:
    """Makes the groups over one set of sources, from the summaries that these have at work."""

    def __init__(self, sources: Mapping[SourceName, Source], limits: Limits) -> None:
        self._sources = sources
        self._limits = limits
        self._widths = {name: len(source.stream.schema) for name, source in sources.items()}

    def key_of(self, query: Query) -> GroupKey:
        """What a query shares with those in its group. Raises NotSupported: no group finds rows for it."""
        return key_of(query, self._widths)

    def summaries(self, key: GroupKey) -> dict[SummaryName, Summary] | None:
        """Those of a group, by name; None where one is absent."""
        found: dict[SummaryName, Summary] = {}
        for one in key.priorities:
            summary = self._sources[one.source].summarised.at_work.get(one.summary)
            if summary is None:
                return None
            found[one.summary] = summary
        return found

    def new(self, key: GroupKey) -> PromisingGroup | None:
        """A group that found nothing yet; None where a summary is absent."""
        summaries = self.summaries(key)
        return None if summaries is None else new_group(key, summaries, self._limits)

    def restored(
        self, key: GroupKey, members: Sequence[Member], at: Mapping[SourceName, ScanAt], tree: Tree
    ) -> PromisingGroup | None:
        """The group that ``tree``, its state, was taken of; None where a summary is absent. at: how the
        sources stand, as they did then.
        """
        summaries, limits = self.summaries(key), self._limits
        if summaries is None:
            return None
        if key.kind == "join":
            return PromisingJoin.restored(key, summaries, members, at, of_tree(JoinState, tree), limits)
        return PromisingSelection.restored(key, summaries, members, of_tree(SelectionState, tree), limits)

    def release_lists(self, gone: GroupKey, left: Collection[GroupKey]) -> None:
        """A group went: with the last that goes by lists of frequent values, so do these. left: the other
        groups.
        """
        if gone.kind != "selection":
            return
        for name, summary in (self.summaries(gone) or {}).items():
            users = (key for key in left if any(one.summary == name for one in key.priorities))
            if all(key.kind != "selection" for key in users):
                summary.list_values(None, 0)
