"""A join at work: every combination of rows of its inputs is found once, when its latest part enters.

Rows enter at the NOW of the queries that share the shape. First all of them are put into the indexes, then
the new ones probe: those of input i meet all rows of the inputs before it and the old rows of those behind
it, so that a combination meets once, however the input is cut into batches. What is found is kept as
ordinals, for all queries at once: predicates, conditions and narrower windows are imposed when an answer is
read, from the matches that stand beside the rows. All rows are indexed and combined, wanted by a query or
not: the composites of a query that comes later are there already.

The widest window over each input bounds how far back is probed (:mod:`engine.joins.bounds`); a wider one
makes the composites anew, at the next step. Over ``composites_max`` of them the group lets go of all and says
so: answers are then probed from the indexes when they are asked for, as they are where ``keeps`` is off.

n inputs: a row probes the n-1 other indexes one after another; there are no intermediate tables. In which
order is for a policy to choose, batch by batch and driver by driver (CACQ section 4).

One writer; readers take :meth:`JoinGroup.view`. Cost: O(rows + combinations).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.eddy.choices import ABOUT, POLICIES
from engine.eddy.policies import RoutingPolicy, Visit
from engine.eddy.statistics import ModuleStatistics
from engine.joins.bounds import Reach, timestamps
from engine.joins.composites import Composites
from engine.joins.estimated_order import JoinSizes, estimated_order
from engine.joins.key_index import KeyIndex, KeyIndexes
from engine.joins.shape import Shape, edges_to
from engine.joins.steps import LISTS_MAX, Ends, JoinStep, NewRowBounds, PartnerLists, Route
from engine.joins.view import ROOM_MIN, JoinView, KeptComposites
from engine.kernels import joins
from engine.model import attributes
from engine.model.attributes import Attribute, AttributeValue
from engine.model.batch import Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.usage import Usage
from engine.stems.rows import Rows
from engine.windows.clauses import Window

COMPOSITES_MAX = 1_000_000_000
"""The greatest value that ``composites_max`` can be set to."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A module of the eddy: the probe of one input's index."""

    place: int
    name: str
    queries: int


class JoinGroup:
    """The join of one shape. ``keeps``: whether composites are kept; it may be set while running and changes
    no answer.
    """

    def __init__(
        self,
        shape: Shape,
        indexes: KeyIndexes,
        timeless: Collection[SourceName] = (),
        composites_max: int = Limits().composites_max,
        policy: str = "tickets",
        capacities: Capacities = USUAL,
    ) -> None:
        """timeless: sources whose instants say nothing about those of the others: their rows are partners as
        long as they are retained.
        """
        self.shape = shape
        self.composites_max = composites_max
        self.queries = 0
        self.refused = False
        self._keeps = True
        n = len(shape.inputs)
        self._n = n
        self._registry = indexes
        self._indexes = tuple(
            (
                indexes.take(shape.inputs[edge.left], edge.left_keys),
                indexes.take(shape.inputs[edge.right], edge.right_keys),
            )
            for edge in shape.edges
        )
        self._timeless = [source in timeless for source in shape.inputs]
        self._held: list[Counter[Reach]] = [Counter() for _ in shape.inputs]
        self._reaches: tuple[Reach, ...] | None = None
        self._kept: tuple[Reach, ...] | None = None
        self._floor = np.zeros(n, np.int64)
        self._end = np.zeros(n, np.int64)
        self._composites = Composites(n, capacities)
        self._room = capacities.first(ROOM_MIN)
        self._counted = np.zeros(3, np.int64)
        self._visits = np.zeros(n, np.int64)
        self._work = np.zeros((n, 2), np.int64)
        self._scratch = np.empty((n, 0), np.int64)
        self._lists = PartnerLists.for_rows(LISTS_MAX)
        self.usage = Usage()
        self._found = 0
        self._saved = 0
        self._view: JoinView | None = None
        self.set_policy(policy)

    def close(self) -> None:
        """Give back the indexes; it is not used any more."""
        for pair in self._indexes:
            for index in pair:
                self._registry.give_back(index)

    @property
    def keeps(self) -> bool:
        """Whether composites are kept, as long as they are not too many."""
        return self._keeps

    @keeps.setter
    def keeps(self, keeps: bool) -> None:
        self._keeps = keeps
        self.refused = False

    def set_composites_max(self, count: int) -> None:
        """How many composites are kept at most from the next step on; where they were too many, they are
        found anew then.
        """
        self.composites_max = count
        self.refused = False

    def set_policy(self, name: str) -> None:
        """How the order of probes is chosen from now on. Raises KeyError for a name not in POLICIES."""
        self.policy = name
        self._policies: list[RoutingPolicy] = [POLICIES[name]() for _ in self.shape.inputs]

    # --- windows ----------------------------------------------------------------------------------

    def hold(self, windows: Sequence[Window]) -> None:
        """A query comes; windows: of each input. What it needs is there after the next step."""
        self._change(windows, 1)

    def release(self, windows: Sequence[Window]) -> None:
        """A query goes; windows: as it was held with."""
        self._change(windows, -1)

    def _change(self, windows: Sequence[Window], by: int) -> None:
        self.queries += by
        for held, window in zip(self._held, windows, strict=True):
            reach = Reach.of(window)
            held[reach] += by
            if not held[reach]:
                del held[reach]
        self._reaches = None

    def _widest(self) -> tuple[Reach, ...]:
        """What is needed of each input now."""
        if self._reaches is None:
            self._reaches = tuple(
                Reach(everything=True) if timeless else Reach.widest(held)
                for held, timeless in zip(self._held, self._timeless, strict=True)
            )
            self.refused = False
        return self._reaches

    # --- rows -------------------------------------------------------------------------------------

    def advance(
        self, rows: Mapping[SourceName, Rows], ends: Mapping[SourceName, int], now_ms: int | None
    ) -> None:
        """Rows with ordinals below ``ends`` are visible at NOW. To be called after each step."""
        self._view = None
        for pair in self._indexes:  # build
            for index in pair:
                index.append(rows[index.source], ends[index.source])
        inputs = [rows[source] for source in self.shape.inputs]
        bases = np.array([each.base for each in inputs], np.int64)
        seen = np.maximum(self._end, bases)  # what went unseen never comes
        self._end = np.array([ends[source] for source in self.shape.inputs], np.int64)
        if not (self._keeps and self.queries):
            self._let_go()
            return
        needed = self._widest()
        composites = self._composites
        if len(composites) > self.composites_max and composites.sweep(self._floor) > self.composites_max:
            self.refused = True
            self._let_go()
        if self.refused:
            return
        if now_ms is None:  # nothing is visible, so nothing is missing
            self._let_go()
            self._kept, self._floor, self._end = needed, bases, bases.copy()
            return
        before = np.maximum(self._floor, bases)
        self._floor = self._floors(inputs, needed, now_ms)
        if self._kept is None or not all(map(Reach.covers, self._kept, needed)):
            fits = self._begin_anew()
        else:
            fits = self._probe(inputs, needed, before, seen)
        if not fits:
            self.refused = True
            self._let_go()
            return
        self._kept = needed
        self._composites.drop_below(self._floor)

    def drop_below(self, source: SourceName, base: int) -> None:
        """Rows of a source are gone."""
        self._view = None
        self._registry.drop_below(source, base)
        for place, name in enumerate(self.shape.inputs):
            if name == source:
                self._floor[place] = max(self._floor[place], base)

    def forget(self) -> None:
        """The rows of an input begin elsewhere: combinations are found anew at the next step."""
        self._view = None
        self._let_go()

    def _let_go(self) -> None:
        self._composites.clear()
        self._kept = None

    def _floors(self, inputs: Sequence[Rows], needed: Sequence[Reach], now_ms: int) -> Int64Array:
        floors = [
            reach.floor(rows, int(end), now_ms)
            for reach, rows, end in zip(needed, inputs, self._end, strict=True)
        ]
        return np.array(floors, np.int64)

    def _begin_anew(self) -> bool:
        """All combinations of rows that are in reach: they were together when the latest of them entered. The
        order is the cheapest by estimate, since a policy may have observed nothing.

        Returns whether they fit, as others do.
        """
        self._composites.clear()
        driver = int(np.argmin(self._end - self._floor))
        start = int(self._floor[driver])
        unlike = [(left.unlike, right.unlike) for left, right in self._indexes]
        sizes = JoinSizes((self._end - self._floor).tolist(), self.shape.edges, unlike)
        order = estimated_order(sizes, driver)
        return self._drive(NewRowBounds.none(self._n), driver, order, start, self._floor, self._end)

    def _probe(
        self, inputs: Sequence[Rows], needed: Sequence[Reach], floor: Int64Array, seen: Int64Array
    ) -> bool:
        """The combinations with a new row. floor: before the step, so that none is missed that comes and goes
        in it.
        """
        new = self._end - seen
        if not new.any():
            return True
        low = self._low(inputs, needed, floor, seen)
        bounds = NewRowBounds(seen, np.cumsum(new) - new, low, np.zeros((self._n - 1, 3), np.int64))
        for driver in np.flatnonzero(new).tolist():
            upper = np.where(np.arange(self._n) < driver, self._end, seen)
            upper[driver] = self._end[driver]
            if not self._drive(bounds, driver, self._order(driver), int(seen[driver]), floor, upper):
                return False
        return True

    def _low(
        self, inputs: Sequence[Rows], needed: Sequence[Reach], floor: Int64Array, seen: Int64Array
    ) -> Int64Array:
        """int64[inputs, new rows]: the first row of each input that may meet the new one."""
        new = int((self._end - seen).sum())
        if self._scratch.shape[1] < new:
            self._scratch = np.empty((self._n, 2 * new), np.int64)
        low, at = self._scratch[:, :new], 0
        for place, rows in enumerate(inputs):
            instants = timestamps(rows, int(seen[place]), int(self._end[place]))
            for other, reach in enumerate(needed):
                out = low[other, at : at + len(instants)]
                if self._timeless[place] or self._timeless[other]:
                    out[:] = floor[other]
                else:
                    reach.floors(inputs[other], instants, out)
            at += len(instants)
        return low

    def _drive(
        self,
        bounds: NewRowBounds,
        driver: int,
        order: list[JoinStep],
        start: int,
        floor: Int64Array,
        upper: Int64Array,
    ) -> bool:
        """The combinations of one input's rows from ``start`` on with the others'."""
        route = Route(self.shape, driver, order, self._end_of, bounds, floor, upper, self._lists)
        stop, composites = int(upper[driver]), self._composites
        bounds.counted[:] = 0
        while start < stop:
            chunk = composites.chunk(floor, int(self._end.max()))
            start, count = route.run(start, stop, chunk.origin, chunk.parts, chunk.count)
            self._found += count - chunk.count
            composites.wrote(chunk, count, self._end)
            if len(composites) > self.composites_max and composites.sweep(self._floor) > self.composites_max:
                return False
            if start < stop:
                composites.enlarge(floor)
        counted = bounds.counted
        self._counted += counted.sum(axis=0)
        self._saved += int(counted[:, joins.GIVEN].sum()) * max(0, self.queries - 1)
        for step, (given, passed, _) in zip(order, counted.tolist(), strict=True):
            self._visits[step.place] += 1
            self._work[step.place] += given, passed
            visit = Visit(given, passed, max(0, given - passed) * self.queries, float(given + passed))
            self._policies[driver].observe(self._module(step.place), visit)
        return True

    def _module(self, place: int) -> Probe:
        return Probe(place, f"{self.shape.inputs[place]}#{place}", self.queries)

    def _order(self, driver: int) -> list[JoinStep]:
        """The other inputs, each with an edge to one before it, as the policy chooses."""
        policy, bound, order = self._policies[driver], {driver}, list[JoinStep]()
        policy.begin()
        while len(order) < self._n - 1:
            ready = {
                place: edges
                for place in range(self._n)
                if place not in bound and (edges := edges_to(place, bound, self.shape.edges))
            }
            modules = [self._module(place) for place in ready]
            place = (modules[0] if len(modules) == 1 else policy.choose(modules)).place
            order.append(JoinStep(place, ready[place]))
            bound.add(place)
        return order

    def _end_of(self, number: int, place: int) -> Ends:
        index = self._index(number, place)
        return Ends(index.keys, index.back, index.table, index.first)

    def _index(self, number: int, place: int) -> KeyIndex:
        return self._indexes[number][place == self.shape.edges[number].right]

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> JoinView:
        """The join as it stands; the same object until something changes."""
        if self._view is None:
            kept = None
            if self._kept is not None:
                composites = self._composites
                kept = KeptComposites(composites.view(), len(composites), self._floor.copy(), self._kept)
            keys = tuple((left.view(), right.view()) for left, right in self._indexes)
            plain = self._n == 2 and self._indexes[0][0].codes.is_plain
            self._view = JoinView(self.shape, keys, self._end, kept, plain, self._room)
        return self._view

    def indexes(self) -> Iterator[KeyIndex]:
        """The indexes that it probes, each once for each edge that uses it."""
        for pair in self._indexes:
            yield from pair

    @property
    def nbytes(self) -> int:
        """Bytes of the composites; the indexes' are the registry's."""
        return self._composites.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it, and what can be set."""
        given, passed, cut = self._counted.tolist()
        keeps = "on" if self.keeps else "off"
        return (
            Attribute("composites", keeps, "whether combinations are kept as they are found", ("on", "off")),
            Attribute(
                "policy", self.policy, f"the order in which inputs are probed: {ABOUT}", tuple(POLICIES)
            ),
            Attribute(
                "composites_max",
                self.composites_max,
                "so many combinations are kept at most; beyond, all are let go of and answers are probed for",
                bounds=attributes.NumberRange(0, COMPOSITES_MAX),
                unit="combinations",
            ),
            Attribute("queries", self.queries, "standing queries that share the join"),
            Attribute("composites_kept", len(self._composites), "combinations that are kept"),
            Attribute("composites_bytes", self.nbytes, "bytes that they take"),
            Attribute("composites_found", self._found, "combinations that were found"),
            Attribute("composites_refused", self.refused, "too many to keep: answers are probed for"),
            Attribute("probes", given, "look-ups of a key in an index"),
            Attribute("partners", passed, "rows that they found"),
            Attribute("cut_by_window", cut, "probes that ended at the lower bound of a window"),
            Attribute("probes_saved", self._saved, "look-ups that queries would make apart from each other"),
        )

    def statistics(self) -> tuple[ModuleStatistics, ...]:
        """Statistics of the probes of each input, whichever input drives. Their cost is the rows given and
        the partners found.
        """
        told = []
        for place in range(self._n):
            module, (given, passed) = self._module(place), self._work[place].tolist()
            tickets = [p.tickets(module) for driver, p in enumerate(self._policies) if driver != place]
            told.append(
                ModuleStatistics(
                    module.name,
                    self.queries,
                    None if self._n == 2 else sum(tickets) / len(tickets),
                    int(self._visits[place]),
                    given,
                    given - passed,
                    float(given + passed),
                )
            )
        return tuple(told)

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Set one to a value that it accepts."""
        match name:
            case "policy":
                self.set_policy(str(value))
            case "composites":
                self.keeps = value == "on"
            case "composites_max" if isinstance(value, int):
                self.set_composites_max(value)
            case _:
                raise KeyError(name)

    def _check(self) -> None:
        for pair in self._indexes:
            for index in pair:
                index._check()
        for parts, count, origin in self._composites.view():
            assert ((parts[:count] + origin) < self._end).all()
