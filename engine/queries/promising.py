"""Promising groups over one set of sources: which query is in which, and what steps do with them.

A query with a preference keeps no matches and joins no ordinary group: what its answer is made of is found by
its group (:mod:`engine.promising`), in the units of work that steps grant. A query that is paused is in none;
when it runs again it begins anew, as one that comes. So is one whose maintenance is ``none``: each answer
of it spends a grant of its own (:mod:`engine.queries.on_demand`). Groups begin anew as well where the rows of
a source get other ordinals, and where a summary comes that was dropped; while a summary of theirs is absent
they keep what they found, and look for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from engine.language.preference import preference_of
from engine.language.query import Query
from engine.model.approximation import Approximation
from engine.model.defects import Defects
from engine.model.limits import Limits
from engine.model.maintenance import QueryOptions
from engine.model.source import SourceName
from engine.model.state_tree import Tree, as_tree
from engine.model.summary import SummaryName
from engine.operators.scan import ScanAt
from engine.promising.group import GroupKey, GroupKind, Member, PromisingGroup
from engine.queries.carried import above, bare, found_of_tree, found_tree, together
from engine.queries.on_demand_queries import OnDemandQueries
from engine.queries.preference_tags import GroupTags
from engine.queries.promising_groups import GroupFactory
from engine.sources.source import Source
from engine.standing.query import SetKey, StandingQuery
from engine.views.found_answers import NOTHING_YET, Found

NOTHING_FOUND: Mapping[str, Found] = {}


class GroupNumbers:
    """Gives groups their numbers, ascending in the order in which groups come. over: the sets of sources that
    have groups.
    """

    def __init__(self) -> None:
        self.given = 0
        self.over: dict[SetKey, None] = {}

    def __iter__(self) -> GroupNumbers:
        return self

    def __next__(self) -> int:
        self.given += 1
        return self.given


@dataclass(slots=True)
class Numbered:
    """A group, and the number that says when it came among those of all sets: its turn goes by that.

    group: None while a summary is absent. found: what was found until then.
    """

    number: int
    key: GroupKey
    group: PromisingGroup | None
    members: dict[str, Member]
    found: Mapping[str, Found]
    bases: dict[SourceName, int]
    """Below which rows are gone, as the group was told."""


class SetGroups:
    """Keeps the promising groups over one set of sources."""

    def __init__(
        self,
        sources: Mapping[SourceName, Source],
        limits: Limits,
        numbers: GroupNumbers,
        defects: Defects,
    ) -> None:
        """numbers, defects: the engine's."""
        self._defects = defects
        self._sources = sources
        self._numbers = numbers
        self._factory = GroupFactory(sources, limits)
        self.on_demand = OnDemandQueries(self._factory, limits, defects)
        """Queries for which nothing is kept: they are in no group."""
        self._groups: dict[GroupKey, Numbered] = {}
        self._key_of: dict[str, GroupKey] = {}
        self._carried: dict[str, Found] = {}
        """What queries took along from other groups."""
        self._found: Mapping[str, Found] | None = None
        self._has_now = False
        """Whether the queries have NOW: before that nothing is visible, and no answer lacks anything."""
        self.moved = False
        """Whether something was found, or is left, that was not when somebody looked last."""
        self.unsaved: set[int] = set()
        """Numbers of groups that the store has in another state, or not at all."""

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Numbered]:
        return iter(self._groups.values())

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._key_of

    # --- queries ----------------------------------------------------------------------------------

    def put(self, standing: StandingQuery, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """A query comes, or has other options or another weight. What was found stays; one that was paused
        begins anew.
        """
        query_id, member = standing.query_id, member_of(standing)
        carried: Found | None = None
        before = self._key_of.get(query_id)
        is_asked = standing.maintenance == "none" and not standing.paused
        key = None if standing.paused or is_asked else self._factory.key_of(member.query)
        if before is not None:
            there = self._groups[before].members[query_id]
            if before == key and there.query == member.query:
                self._reweigh(self._groups[before], member)
                return
            if replace(there.query, preference=None) == replace(member.query, preference=None):
                carried = bare(self._found_of(self._groups[before], query_id))
            self.remove(query_id)
        self.on_demand.remove(query_id)
        if is_asked:
            self.on_demand.put(member)
        if key is None:
            return
        numbered = self._groups.get(key)
        if numbered is None:
            numbered = self._groups[key] = Numbered(next(self._numbers), key, None, {}, NOTHING_FOUND, {})
            self._numbers.over[tuple(self._sources)] = None
            numbered.group = self._factory.new(key)
        self._key_of[query_id] = key
        numbered.members[query_id] = member
        if carried is not None and len(carried):
            self._carried[query_id] = carried
        self._has_now = now_ms is not None
        if numbered.group is not None:
            try:
                numbered.group.add(member, at)
            except Exception as defect:  # noqa: BLE001  (it is the newcomer's; the others begin anew)
                self._defects.note([query_id], defect)
                self.remove(query_id)
                if numbered.members:
                    self._anew(numbered, at, now_ms)
                return
            with self._work_of(numbered):
                numbered.group.arrive(at, now_ms)
        self._touch(numbered)

    @contextmanager
    def _work_of(self, numbered: Numbered) -> Iterator[None]:
        """What fails within ends the queries of a group, which finds nothing more."""
        try:
            yield
        except Exception as defect:  # noqa: BLE001  (they share all of it)
            self.failed(numbered, defect)

    def failed(self, numbered: Numbered, defect: Exception) -> None:
        """The work of a group failed."""
        self._defects.note(numbered.members, defect)
        numbered.group, numbered.found = None, NOTHING_FOUND
        self._touch(numbered)

    def _reweigh(self, numbered: Numbered, member: Member) -> None:
        if numbered.members[member.query_id].weight != member.weight:
            numbered.members[member.query_id] = member
            if numbered.group is not None:
                with self._work_of(numbered):
                    numbered.group.reweigh(member.query_id, member.weight)
            self._touch(numbered)

    def remove(self, query_id: str) -> None:
        """A query goes, or is paused; those that are in no group are passed over."""
        self.on_demand.remove(query_id)
        key = self._key_of.pop(query_id, None)
        if key is None:
            return
        numbered = self._groups[key]
        self._carried.pop(query_id, None)
        del numbered.members[query_id]
        self._touch(numbered)
        if not numbered.members:
            del self._groups[key]
            self._factory.release_lists(key, self._groups)
            if not self._groups:
                self._numbers.over.pop(tuple(self._sources), None)
        elif numbered.group is not None:
            with self._work_of(numbered):
                numbered.group.remove(query_id)

    def kind_of(self, query: Query) -> GroupKind:
        """What its group joins or selects. Raises NotSupported."""
        return self._factory.key_of(query).kind

    # --- what steps do ----------------------------------------------------------------------------

    def arrive(self, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """One of the sources took a step, and its summaries with it."""
        self._has_now = now_ms is not None
        for numbered in self._groups.values():
            if numbered.group is not None:
                with self._work_of(numbered):
                    numbered.group.arrive(at, now_ms)
                self._touch(numbered)

    def begin_anew(self, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """Rows of a source have other ordinals, or summaries came or went: what was found is found again,
        but where a summary is absent.
        """
        for numbered in self._groups.values():
            self._anew(numbered, at, now_ms)

    def _anew(self, numbered: Numbered, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        with self._work_of(numbered):
            kept = {name: bare(self._found_of(numbered, name)) for name in numbered.members}
            numbered.group = self._factory.new(numbered.key)
            numbered.bases.clear()
            for name in kept:
                self._carried.pop(name, None)
            if numbered.group is None:
                numbered.found = kept
            else:
                numbered.found = NOTHING_FOUND
                for member in numbered.members.values():
                    numbered.group.add(member, at)
                numbered.group.arrive(at, now_ms)
        self._touch(numbered)

    def summaries(self) -> set[SummaryName]:
        """Those that a group takes estimates from."""
        return {one.summary for key in self._groups for one in key.priorities}

    def spent(self, numbered: Numbered) -> None:
        """A group has used units."""
        self._touch(numbered)

    def drop_below(self, name: SourceName) -> None:
        """A source may have let go of rows."""
        base = self._sources[name].rows.base
        for numbered in self._groups.values():
            if numbered.bases.get(name) != base and name in numbered.key.sources:
                numbered.bases[name] = base
                if numbered.group is not None:
                    with self._work_of(numbered):
                        numbered.group.drop_below(name, base)
                for query_id in self._carried.keys() & numbered.members.keys():
                    bases = [self._sources[one].rows.base for one in numbered.key.sources]
                    self._carried[query_id] = above(self._carried[query_id], bases)
                self._touch(numbered)

    def _touch(self, numbered: Numbered) -> None:
        group = numbered.group
        if self._carried and group is not None:
            for query_id in self._carried.keys() & numbered.members.keys():
                with self._work_of(numbered):
                    if group.is_whole(query_id):  # all that its windows hold was found again
                        self._carried.pop(query_id, None)
        self._found = None
        self.moved = True
        self.unsaved.add(numbered.number)

    # --- readers ----------------------------------------------------------------------------------

    def found(self) -> Mapping[str, Found]:
        """For each query what was found; immutable, and the same object until something changes."""
        if self._found is None:
            found: dict[str, Found] = {}
            for one in self._groups.values():
                for name in one.members:
                    found[name] = NOTHING_YET
                    with self._defects.of(name):
                        found[name] = self._found_of(one, name)
            self._found = found
        return self._found

    def _found_of(self, numbered: Numbered, query_id: str) -> Found:
        group = numbered.group
        if group is None:
            return numbered.found.get(query_id, NOTHING_YET)
        found, carried = group.found(query_id), self._carried.get(query_id)
        return found if carried is None else together(carried, found)

    def work(self) -> int:
        """How many units there is work for at least; 0: for none."""
        units = 0
        for one in self:
            with self._work_of(one):
                if one.group is not None and one.group.left:
                    units += max(1, one.group.counts.short)
        return units

    def group_of(self, query_id: str) -> Numbered | None:
        """The group of a query; None of one that is paused."""
        key = self._key_of.get(query_id)
        return None if key is None else self._groups[key]

    def tags(self, standing: StandingQuery) -> Iterator[Approximation]:
        """What of the answer of a query is not found yet, or never will be; nothing where it is exact."""
        yield from self.on_demand.tags(standing.query_id)
        numbered = self.group_of(standing.query_id)
        if numbered is None or not self._has_now:
            return
        yield from self._tags_in(numbered, standing.query_id, GroupTags(numbered.key, numbered.group))

    def all_tags(self) -> Iterator[tuple[str, tuple[Approximation, ...]]]:
        """Yields the id of each query in a group with the tags that :meth:`tags` makes for its group.
        O(queries in groups), and what it takes each group to tell what is left.
        """
        for numbered in self._groups.values():
            group = GroupTags(numbered.key, numbered.group)
            for query_id in numbered.members:
                tags: tuple[Approximation, ...] = ()
                with self._defects.of(query_id):
                    tags = self._tags_in(numbered, query_id, group) if self._has_now else ()
                yield query_id, tags

    def _tags_in(self, numbered: Numbered, query_id: str, group: GroupTags) -> tuple[Approximation, ...]:
        member = numbered.members[query_id]
        return group.of(member, lambda: self._found_of(numbered, query_id), query_id in self._carried)

    @property
    def nbytes(self) -> int:
        """Bytes of the promising sets and of what was found for them."""
        return sum(one.group.nbytes for one in self if one.group is not None)

    # --- the store's side -------------------------------------------------------------------------

    def state(self, numbered: Numbered) -> Tree:
        """Returns the state of a group, as :meth:`restore` takes it."""
        group = numbered.group
        return {
            "over": list(self._sources),
            "members": list(numbered.members),
            "state": None if group is None else as_tree(group.state()),
            "bases": dict(numbered.bases),
            "found": {name: found_tree(one) for name, one in numbered.found.items()},
            "carried": {
                name: found_tree(self._carried[name]) for name in numbered.members if name in self._carried
            },
        }

    def restore(
        self,
        number: int,
        tree: Tree,
        standing: Mapping[str, StandingQuery],
        at: Mapping[SourceName, ScanAt],
    ) -> bool:
        """A group comes back, with what it found where its summary is absent; returns whether it does: not
        where its members are others now, or only one of its state and its summaries is there.
        """
        names = tree["members"]
        if any(name not in standing for name in names):
            return False
        members = {name: member_of(standing[name]) for name in names}
        keys = {self._factory.key_of(member.query) for member in members.values()}
        if len(keys) != 1 or any(standing[name].paused for name in names):
            return False
        (key,) = keys
        if (self._factory.summaries(key) is None) != (tree["state"] is None):
            return False
        group = self._factory.restored(key, list(members.values()), at, tree["state"])
        bases = {SourceName(name): base for name, base in tree["bases"].items()}
        found = {name: found_of_tree(one) for name, one in tree["found"].items() if name in members}
        self._groups[key] = Numbered(number, key, group, members, found, bases)
        self._numbers.over[tuple(self._sources)] = None
        self._has_now = any(one.now_ms is not None for one in at.values())
        self._key_of |= dict.fromkeys(members, key)
        self._carried |= {name: found_of_tree(one) for name, one in tree["carried"].items()}
        self._found, self.moved = None, True
        return True

    def _check(self) -> None:
        for key, numbered in self._groups.items():
            assert numbered.members
            assert numbered.group is None or set(numbered.group.members) == set(numbered.members)
            assert all(self._key_of[name] == key for name in numbered.members)
            if numbered.group is not None:
                numbered.group._check()
        assert (tuple(self._sources) in self._numbers.over) == bool(self._groups)
        assert len(self._key_of) == sum(len(one.members) for one in self)


def member_of(standing: StandingQuery) -> Member:
    """A query as its group takes it: its options take the place of what its text says."""
    query, options = standing.query, QueryOptions.of(standing.registration.options)
    meant = preference_of(query, options)
    return Member(
        standing.query_id,
        query if meant == query.preference else replace(query, preference=meant),
        standing.weight,
    )
