"""Tags of answers of which something is left to be found, or never will be."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import cached_property

from engine.language.query import Query
from engine.model.approximation import Approximation, Expected, Unfinished
from engine.promising.group import GroupCounts, GroupKey, Member, PromisingGroup, expected_precision
from engine.views.estimated_aggregates import unscaled_calls

Tags = tuple[Approximation, ...]


def where_of(key: GroupKey) -> str:
    """The sources that are looked through."""
    return " JOIN ".join(key.sources)


class GroupTags:
    """Tags of the queries of one group, as it stands. Queries that join over the same windows share them,
    whatever their constants are.
    """

    def __init__(self, key: GroupKey, group: PromisingGroup | None) -> None:
        """group: None while a summary is absent."""
        self._key = key
        self._group = group
        self._known: dict[object, Tags] = {}

    @cached_property
    def _counts(self) -> GroupCounts:
        assert self._group is not None
        return self._group.counts

    def of(self, member: Member, found: Callable[[], Sized], is_alone: bool = False) -> Tags:
        """found: what was found for it. is_alone: it shares its tag with nobody."""
        alike: object = member.query_id
        if self._key.kind == "join" and not is_alone:
            alike = member.preference.window_ms, _names(member.query)
        tags = self._known.get(alike)
        if tags is None:
            tags = self._known[alike] = self._made(member, found)
        return tags

    def _made(self, member: Member, found: Callable[[], Sized]) -> Tags:
        group, query_id = self._group, member.query_id
        unscaled = unscaled_calls(member.query)
        if group is None:  # nothing is known of what it lacks
            none = Unfinished(0, 0, 0)
            return (self._tag(0.0, None, unscaled, none),)
        if group.is_whole(query_id):
            return ()
        counts = self._counts
        share = expected_precision(len(found()), group.estimate_left(query_id))
        unfinished = Unfinished(counts.entries_left, counts.cut + counts.lapsed, counts.short)
        return (self._tag(share, 1.0 - share, unscaled, unfinished),)

    def _tag(
        self, share: float, missing: float | None, unscaled: tuple[str, ...], unfinished: Unfinished
    ) -> Approximation:
        return Approximation(
            "preference",
            where_of(self._key),
            "declared",
            round(100.0 * share, 3),
            "percent",
            100.0,
            expected=Expected() if missing is None else Expected(0.0, missing),
            unscaled=unscaled,
            unfinished=unfinished,
        )


def _names(query: Query) -> tuple[str, ...]:
    """Returns the names of the aggregate columns of a query, which its tag may name."""
    return tuple(call.name for aggregate in query.aggregates for call in aggregate.calls)


def tag_on_demand(key: GroupKey, units: int) -> Approximation:
    """Makes the tag of a query for which nothing is kept, before it is asked: each answer spends at most so
    many units.
    """
    return Approximation("preference", where_of(key), "declared", float(units), "units")
