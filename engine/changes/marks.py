"""From what a set of sources was before a step to the transition that it made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.model.source import SourceName
from engine.sources.source_view import SourceView, sources_at, timeless
from engine.standing.query import StandingQuery
from engine.stems.rows import Rows


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a set of sources stood: NOW of its queries, the instant each source was seen at, and from where
    on each was retained.
    """

    now_ms: int | None
    seen_ms: Mapping[SourceName, int | None]
    retained_from_ms: Mapping[SourceName, int | None]


def transition_of(
    before: Mark,
    after: Mark,
    sources: Mapping[SourceName, SourceView],
    rows: Mapping[SourceName, Rows],
    shared: bool,
) -> Transition | None:
    """The transition from one to the other; None where nothing moved.

    sources: as they are after the step; rows: theirs before retention took any at the end of it. shared:
    others read the sources too and may hold rows back, so that nobody can tell when in the interval rows were
    let go of.
    """
    now_ms = after.now_ms
    if now_ms is None:
        return None
    moving, since_ms, until_ms = _moving(before, after, sources)
    retained = before.retained_from_ms
    if not moving and retained == after.retained_from_ms:
        return None
    seen = {name: _as_of(source, rows[name], retained[name]) for name, source in sources.items()}
    has_stream = any(not source.stream.is_table for source in sources.values())
    by_source = {}
    for name, at in sources_at(seen, now_ms).items():
        to_ms = after.retained_from_ms[name]
        taken = to_ms is not None and to_ms != retained[name]
        retention_ms = None
        if taken and len(sources) == 1 and has_stream and moving and not shared:
            assert to_ms is not None
            retention_ms = now_ms - to_ms
        by_source[name] = SourceTransition(at, name in moving, retention_ms, to_ms if taken else None)
    if has_stream:
        alone = before.now_ms == now_ms
        return Transition(since_ms, until_ms, by_source, instant_ms=now_ms if alone else None)
    return Transition(
        since_ms, until_ms, by_source, floor_ms=NEVER if before.now_ms is None else before.now_ms
    )


def _as_of(source: SourceView, rows: Rows, retained_from_ms: int | None) -> SourceView:
    """A source with other rows, and retained from another instant on, where they are others."""
    if source.rows is rows and source.retained_from_ms == retained_from_ms:
        return source
    return replace(source, rows=rows, retained_from_ms=retained_from_ms)


def _moving(
    before: Mark, after: Mark, sources: Mapping[SourceName, SourceView]
) -> tuple[frozenset[SourceName], int, int]:
    """The sources that moved, and between which instants."""
    assert after.now_ms is not None
    tables = frozenset(name for name, source in sources.items() if source.stream.is_table)
    if len(tables) < len(sources) and before.now_ms != after.now_ms:
        still = timeless([source.stream for source in sources.values()])
        return frozenset(sources) - still, _or_never(before.now_ms), after.now_ms
    moved = [name for name in tables if before.seen_ms[name] != after.seen_ms[name]]
    if not moved:
        return frozenset(), 0, 1
    (name,) = moved  # a step is one source's
    until_ms = after.seen_ms[name]
    assert until_ms is not None
    since_ms = before.seen_ms[name]
    if since_ms is None:  # the others may have been visible before
        since_ms = NEVER if before.now_ms is None else NEVER + 1
    return frozenset(moved), since_ms, until_ms


def _or_never(instant_ms: int | None) -> int:
    return NEVER if instant_ms is None else instant_ms


def seen_by(query: StandingQuery, transition: Transition) -> Transition:
    """The transition as a query sees it: with its slots."""
    at = query.at({name: at_source.at for name, at_source in transition.by_source.items()})
    return replace(
        transition,
        by_source={name: replace(at_source, at=at[name]) for name, at_source in transition.by_source.items()},
    )
