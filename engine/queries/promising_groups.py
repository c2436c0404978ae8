"""Which group a query with a preference belongs to, and how groups are made and come back from a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def restored_group(
    key: GroupKey,
    summaries: Mapping[SummaryName, Summary],
    limits: Limits,
    members: Sequence[Member],
    at: Mapping[SourceName, ScanAt],
    tree: Tree,
) -> PromisingGroup:
    """The group that ``state`` was taken of. at: how the sources stand, as they did then."""
    if key.kind == "join":
        return PromisingJoin.restored(key, summaries, members, at, of_tree(JoinState, tree), limits)
    return PromisingSelection.restored(key, summaries, members, of_tree(SelectionState, tree), limits)
