"""How the sources of a graph stand between two transitions: state is true where the next begins so."""

from __future__ import annotations

from engine.changes.transition import NEVER, Transition
from engine.model.source import SourceName
from engine.stems.table_stem import TableRows

Stand = tuple[int | None, dict[SourceName, tuple[int, int | None, int]]]
"""NOW, None where all sources are tables; of each source how many rows ever are visible, from when on it is
retained, and of a table the first ordinal: when superseded versions are let go of, the others get new ones.
"""


def ends_of(stand: Stand) -> dict[SourceName, int]:
    """The ordinals behind the rows of each source that nodes which stand so have seen."""
    return {name: end for name, (end, _, _) in stand[1].items()}


def stands_of(transition: Transition) -> tuple[Stand, Stand]:
    """How the sources of a transition stand at its beginning and at its end. Where a table moves alone beside
    streams, NOW is that of the streams.
    """
    before, after, streams = {}, {}, False
    for name, at_source in transition.by_source.items():
        rows, retained_ms = at_source.at.rows, at_source.at.retained_from_ms
        is_table = isinstance(rows, TableRows)
        streams |= not is_table
        first = rows.base if is_table else 0
        visible = at_source.at.end
        if at_source.moves:
            visible = (
                rows.base
                if transition.since_ms <= NEVER + 1
                else rows.first_at_or_after(transition.since_ms + 1)
            )
        before[name] = visible, retained_ms, first
        after[name] = (
            at_source.at.end,
            at_source.retained_to_ms if at_source.retained_to_ms is not None else retained_ms,
            first,
        )
    if not streams:
        return (None, before), (None, after)
    if transition.instant_ms is not None:
        return (transition.instant_ms, before), (transition.instant_ms, after)
    return (transition.since_ms, before), (transition.until_ms, after)
