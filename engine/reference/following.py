"""Which queries are followed, and what each step tells of them.

A query is followed where its text says EMIT CHANGES, or while somebody asked for it. Of the former the whole
answer is told when the query comes (``snapshot``), and taken back when it goes (``end``), so that the sum of
all that was told is the answer at any time. Not so where only rows that leave are told, or the text wants no
snapshot; where only rows that come are told, or whole answers, nothing is taken back. Nothing is told of a
paused query, and the sum stays; when it goes on the difference to the answer is told of when it was paused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.language.query import Query
from engine.model.changes import Occasion
from engine.reference.changes import Sources, Told, Way, changes_of, difference, operator_of, whole
from engine.reference.rows import Source, Values
from engine.reference.seen import now_of, seen_at
from engine.reference.stages import answer


class Following:
    """asked: queries without EMIT that somebody follows."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.last: dict[str, tuple[int | None, list[Values]]] = {}
        """By query that is paused and followed: NOW and the answer when it was paused."""

    def follows(self, query_id: str, query: Query) -> bool:
        return query.emit is not None or query_id in self.asked

    def begins(self, query_id: str, query: Query, sources: Sources) -> Iterable[Told]:
        """A query came."""
        if query.emit is not None and query.emit.snapshot and operator_of(query, sources) != "dstream":
            yield _told(query_id, query, sources, "snapshot")

    def ends(self, query_id: str, query: Query, sources: Sources) -> Iterable[Told]:
        """A query goes that is not paused, or whose last answer was kept."""
        last = self.last.pop(query_id, None)
        if query.emit is None or not query.emit.snapshot or operator_of(query, sources) != "changes":
            return
        if last is None:
            yield _told(query_id, query, sources, "end")
        else:
            now, rows = last
            yield Told(query_id, "end", now, whole(rows, now or 0, -1))

    def pauses(self, query_id: str, query: Query, sources: Sources) -> None:
        """A query is paused."""
        if self.follows(query_id, query):
            now = now_of(query, sources)
            self.last[query_id] = now, answer(query, seen_at(query, sources, now))[0]

    def resumes(self, query_id: str, query: Query, sources: Sources) -> Iterable[Told]:
        """A query goes on."""
        if query_id not in self.last:
            yield from self.begins(query_id, query, sources)
            return
        _, was = self.last.pop(query_id)
        now = now_of(query, sources)
        if now is not None:
            is_now = answer(query, seen_at(query, sources, now))[0]
            yield _differing(query_id, query, sources, was, is_now, now)

    def changes(self, queries: Mapping[str, Query], way: Way) -> Iterable[Told]:
        """What a step changed. queries: that stood before it, stand now, and are not paused."""
        for query_id, query in queries.items():
            if self.follows(query_id, query):
                yield Told(query_id, "step", now_of(query, way.after), changes_of(query, way))

    def history(self, queries: Mapping[str, Query], before: Sources, after: Sources) -> Iterable[Told]:
        """What history that came back to a source changed, at NOW: rows that come are no news to who asks for
        those alone.
        """
        for query_id, query in queries.items():
            now, operator = now_of(query, after), operator_of(query, after)
            if not self.follows(query_id, query) or operator == "istream" or now is None:
                continue
            was, is_now = (answer(query, seen_at(query, sources, now))[0] for sources in (before, after))
            yield _differing(query_id, query, after, was, is_now, now)


def copies(sources: Mapping[str, Source]) -> Sources:
    """The sources as they stand, whatever becomes of them."""
    return {name: replace(source, rows=list(source.rows)) for name, source in sources.items()}


def _differing(
    query_id: str, query: Query, sources: Sources, was: list[Values], is_now: list[Values], now: int
) -> Told:
    """The part of the difference of two answers that the query's operator lets through, at NOW."""
    operator = operator_of(query, sources)
    changes = difference(was, is_now, now)
    if operator == "rstream" and changes:
        changes = whole(is_now, now, 1)
    passes = {"dstream": (-1,), "istream": (1,)}.get(operator, (-1, 1))
    return Told(query_id, "step", now, [change for change in changes if change.weight in passes])


def _told(query_id: str, query: Query, sources: Sources, occasion: Occasion) -> Told:
    now = now_of(query, sources)
    rows, _, _ = answer(query, seen_at(query, sources, now))
    weight = 1 if occasion == "snapshot" else -1
    return Told(query_id, occasion, now, whole(rows, now or 0, weight))
