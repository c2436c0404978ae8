"""Transitions one after another: tables that move alone, retention that cuts windows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.model.source import SourceName
from tests.changes.ways import TABLES, random_transition

SOURCES = ("s", "u", "h", "m")


def whole_course(rng: random.Random, most: int = 14) -> Transition:
    """A transition of all sources, without retention."""
    while True:
        whole = random_transition(rng, SOURCES, most)
        if all(each.retained_to_ms is None and each.at.retained_from_ms is None for each in _of(whole)):
            return whole


def _of(transition: Transition) -> Iterator[SourceTransition]:
    yield from transition.by_source.values()


def cut(rng: random.Random, transition: Transition, most: int = 3) -> list[Transition]:
    """Cut a transition into several that follow each other, without retention."""
    first = -1 if transition.since_ms == NEVER else transition.since_ms
    ends = sorted({rng.randint(first + 1, transition.until_ms) for _ in range(most)} | {transition.until_ms})
    found, since = [], transition.since_ms
    for until in ends:
        found.append(Transition(since, until, transition.by_source))
        since = until
    return found


def with_tables_alone(rng: random.Random, whole: Transition, ahead: bool) -> list[Transition]:
    """Streams move together, and between that a table alone while they stand still.

    ahead: tables may come to instants after NOW, as those of another kind of time do.
    """
    now = whole.since_ms
    seen = dict.fromkeys(TABLES, now)
    found: list[Transition] = []

    def stood(name: SourceName, until: int, now_ms: int, *, moves: bool) -> SourceTransition:
        at_source = whole.by_source[name]
        rows = at_source.at.rows
        end = rows.base if until == NEVER else rows.first_at_or_after(until + 1)
        return replace(at_source, at=replace(at_source.at, end=end, now_ms=now_ms), moves=moves)

    for _ in range(rng.randint(4, 10)):
        if not found or (now < whole.until_ms and rng.random() < 0.5):
            until = rng.randint((-1 if now == NEVER else now) + 1, whole.until_ms)
            by_source = {
                name: stood(name, seen.get(name, until), until, moves=name not in TABLES)
                for name in whole.by_source
            }
            found.append(Transition(now, until, by_source))
            now = until
            continue
        table = rng.choice(sorted(TABLES))
        first = -1 if seen[table] == NEVER else seen[table]
        until = first + rng.randint(1, 4)
        until = until if ahead else min(until, now)
        if until > first:
            since = NEVER + 1 if seen[table] == NEVER else first
            seen[table] = until
            by_source = {
                name: stood(name, seen.get(name, now), now, moves=name == table) for name in whole.by_source
            }
            found.append(Transition(since, until, by_source, instant_ms=now))
    return found


def with_retention(rng: random.Random, whole: Transition) -> list[Transition]:
    """Retention follows NOW, in windows at times, and once in a while moves while NOW stands still."""
    kept: dict[SourceName, int | None] = dict.fromkeys(whole.by_source)
    found: list[Transition] = []

    def retained(name: SourceName, until: int, share: float, *, moves: bool) -> SourceTransition:
        at_source, before = whole.by_source[name], kept[name]
        end = at_source.at.rows.first_at_or_after(until + 1)
        at = replace(at_source.at, end=end, now_ms=until, retained_from_ms=before)
        to = until - rng.choice((12, 9, 9, 4, 3, 2, 1, 0))
        if name in TABLES or rng.random() > share or (before is not None and to <= before):
            return SourceTransition(at, moves)
        kept[name] = to
        return SourceTransition(at, moves, None, to)

    for part in cut(rng, whole, 5):
        by_source = {
            name: retained(name, part.until_ms, rng.choice((0, 0.5)), moves=True) for name in whole.by_source
        }
        found.append(replace(part, by_source=by_source))
        if rng.random() < 0.2:
            by_source = {name: retained(name, part.until_ms, 0.5, moves=False) for name in whole.by_source}
            if any(each.retained_to_ms is not None for each in by_source.values()):
                found.append(Transition(0, 1, by_source, instant_ms=part.until_ms))
    return found
