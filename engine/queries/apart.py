"""Followed queries that are set apart: their state is made beside the steps, and what changes in their
answers is told once they rejoin.

After a restart the state that changes come from is to be made from the retained rows. Where that takes long,
as by a function of a user's or over many rows, the step that would make it holds up all others. So these
queries leave the graph of their sources (:class:`engine.model.step.SetApart`) for graphs of their own, one
for those that leave by the same operator. State is made there from the rows as they stood then, which are
immutable: in any thread. The transitions of the steps that follow are kept, and go through that graph; what
it tells is kept with the positions of those steps. With the step by which they rejoin all of that is told,
and the graph of their sources takes the nodes over, with their state.

What a step changes in an answer is a function of rows and instants alone, so followers are told what they
would have been told, later. Both steps are journalled: a replay sets the same queries apart, tells nothing of
those that rejoined, and goes on with the others.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from engine.changes.transition import Transition
from engine.dataflow.graph import Graph
from engine.dataflow.isolation import advanced, remade
from engine.model.changes import Changes
from engine.model.defects import Defects
from engine.model.interruption import CalledOff, Check, interruptible
from engine.model.limits import Limits
from engine.model.step import Position
from engine.standing.query import SetKey
from tureen.errors import TureenError

TOGETHER_MAX = 2_000
"""Most queries of a group: one step names them all."""


@dataclass(slots=True, eq=False)
class Passed:
    """A transition that a set of sources has made, and the next one. All that is apart over these goes along
    the same chain, so that each is kept once, and as long as somebody has to go through it.
    """

    # None: the beginning of a chain.
    made: tuple[Transition, int, Position] | None = None
    next: Passed | None = None


@dataclass(slots=True, eq=False)
class Apart:
    """Some queries over the same sources. :meth:`run` is called once, in any thread; everything else by the
    engine's owner.
    """

    # The set of sources that they read.
    key: SetKey
    # A graph of them alone, to be taken over.
    graph: Graph
    # The transition of no time at which their state begins.
    stands: Transition
    limits: Limits
    # Up to which transition it went.
    at: Passed
    # Those that are followed still.
    query_ids: set[str] = field(default_factory=set)
    is_begun: bool = False
    # Whether run() is over.
    is_ready: bool = False
    # Why they do not rejoin: their state takes too long to be made.
    refusal: TureenError | None = None
    # Those whose changes cannot be told, and why.
    broken: dict[str, Exception] = field(default_factory=dict)
    _defects: Defects = field(default_factory=Defects)
    # What changed so far.
    _changes: list[Changes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.query_ids.update(self.graph.query_ids)

    def run(self, check: Check | None = None) -> None:
        """Make the state, and go through what has come meanwhile. check: called between pieces; what it
        raises ends this, and is raised.
        """
        ended: list[Exception] = []

        def may_go_on() -> None:
            if ended or self.refusal is not None or not self.query_ids:
                raise CalledOff
            if check is not None:
                try:
                    check()
                except Exception as error:
                    ended.append(error)
                    raise CalledOff from error

        self.is_begun = True
        try:
            with interruptible(may_go_on):
                self._hydrate()
                may_go_on()
                while self.some():
                    may_go_on()
        except CalledOff:
            if ended:
                raise ended[0] from None
        except Exception as defect:
            self._defects.note(self.query_ids, defect)
            raise
        finally:
            self.broken |= self._defects.errors()
            self.is_ready = True

    def _hydrate(self) -> None:
        """Where that fails, the first transition tells whose defect it is."""
        try:
            self.graph.hydrate(self.stands, self.limits)
        except CalledOff:
            raise
        except Exception:  # noqa: BLE001
            self.graph = remade(self.graph, self.graph.query_ids, self._defects)

    def some(self) -> bool:
        """Go through the next transition. Returns whether there was one."""
        following = self.at.next
        if following is None or following.made is None:
            return False
        self.at, (transition, now_ms, position) = following, following.made
        self.graph, changes = advanced(
            self.graph, transition, self.limits, now_ms, self.broken, self._defects
        )
        self._changes += [replace(one, position=position) for one in changes]
        return True

    def refuse(self, refusal: TureenError) -> None:
        """It takes too long. A thread that makes the state ends soon, and is not waited for."""
        self.refusal = refusal

    def rejoins(self, *, tells: bool) -> list[str]:
        """Which of the queries are in the graph, and in no other, once all has gone through it. tells: False:
        nobody wants what changed, and state is made anew where it is needed.
        """
        while tells and self.some():
            pass
        for name in list(self.graph.query_ids):
            if name not in self.query_ids or name in self.broken:
                self.graph.remove(name)
        return list(self.graph.query_ids)

    def told(self) -> Iterator[Changes]:
        """What changed, in the order of the steps; of those that are followed still."""
        for one in self._changes:
            if self.query_ids.issuperset(one.query_ids):
                yield one
            else:
                mine = [place for place, name in enumerate(one.query_ids) if name in self.query_ids]
                yield from map(one.of_query, mine)

    def parted(self, query_ids: Collection[str], own: Hashable) -> Apart:
        """Some of these queries by themselves, before any state is made. own: as Graph.anew has it."""
        assert not self.is_begun
        self.query_ids.difference_update(query_ids)
        graph = self.graph.anew(query_ids, own)
        return Apart(self.key, graph, self.stands, self.limits, self.at)


class AllApart:
    """All queries of an engine that are set apart. One owner, as the engine."""

    def __init__(self) -> None:
        self.groups: list[Apart] = []
        self._by_query: dict[str, Apart] = {}
        self._ends: dict[SetKey, Passed] = {}
        """The last transition of each set of sources over which some are apart."""
        self._made = 0

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._by_query

    def __bool__(self) -> bool:
        return bool(self.groups)

    @property
    def keys(self) -> Collection[SetKey]:
        """The sets of sources over which some are apart."""
        return self._ends.keys()

    @property
    def query_ids(self) -> Collection[str]:
        """Those that are set apart."""
        return self._by_query.keys()

    def add(
        self, key: SetKey, graph: Graph, names: Iterable[str], stands: Transition, limits: Limits
    ) -> None:
        """Some queries of a graph are set apart, those of them that may be; they are in the graph still.
        stands: a transition of no time.
        """
        by_shape: dict[Hashable, list[str]] = {}
        for name in names:
            by_shape.setdefault(graph.shape_of(name), []).append(name)
        for alike in by_shape.values():
            for first in range(0, len(alike), TOGETHER_MAX):
                apart = graph.anew(alike[first : first + TOGETHER_MAX], self._own())
                if apart.may_be_apart:
                    self._put(Apart(key, apart, stands, limits, self._ends.setdefault(key, Passed())))

    def _own(self) -> Hashable:
        self._made += 1
        return "apart", self._made

    def _put(self, made: Apart) -> None:
        self.groups.append(made)
        self._by_query.update(dict.fromkeys(made.query_ids, made))

    def came(self, key: SetKey, transition: Transition, now_ms: int, position: Position) -> None:
        """The sources of a set took a step. O(1)."""
        end = self._ends.get(key)
        if end is not None:
            end.next = self._ends[key] = Passed((transition, now_ms, position))

    def gone(self, query_id: str) -> None:
        """A query is followed no more."""
        made = self._by_query.pop(query_id, None)
        if made is not None:
            made.query_ids.discard(query_id)
            if not made.query_ids:
                self._leave(made)

    def _leave(self, made: Apart) -> None:
        self.groups.remove(made)
        if all(one.key != made.key for one in self.groups):
            del self._ends[made.key]

    def rejoining(self, query_ids: Iterable[str]) -> list[Apart]:
        """These queries are set apart no more: in the groups that they were in. They were divided otherwise
        perhaps when their state was made, and this replays it.
        """
        by_group: dict[Apart, list[str]] = {}
        for query_id in query_ids:
            made = self._by_query.get(query_id)
            if made is not None:
                by_group.setdefault(made, []).append(query_id)
        found: list[Apart] = []
        for made, names in by_group.items():
            one = made if len(names) == len(made.query_ids) else made.parted(names, self._own())
            for name in names:
                del self._by_query[name]
            if one is made:
                self._leave(made)
            found.append(one)
        return found
