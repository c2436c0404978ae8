"""A join at work: every combination of rows of its inputs is found once, when its latest part enters.

Rows enter at the NOW of the queries that share the shape. First those that a query wants are put into the
indexes, then the new ones of them probe: those of input i meet all rows of the inputs before it and the old
rows of those behind it, so that a combination meets once, however the input is cut into batches. What is
found is kept as ordinals, for all queries at once: predicates, conditions and narrower windows are imposed
when an answer is read, from the matches that stand beside the rows.

Lineage (:mod:`engine.joins.lineage`) says who wants a row: a row that no query wants is in no index and does
not probe, and a combination that no query wants as a whole is not kept. A query that comes later has the rows
put in that only it wants, and their combinations found, at the next step. A reader whose rows are not all
wanted by one query has them joined anew.

The widest window over each input bounds how far back is probed (:mod:`engine.joins.bounds`); a wider one
makes the composites anew, at the next step. Over ``composites_max`` of them the group lets go of all and says
so: answers are then probed from the indexes when they are asked for, as they are where ``keeps`` is off.

n inputs: a row probes the n-1 other indexes one after another; there are no intermediate tables. In which
order is for a policy to choose, batch by batch and driver by driver (CACQ section 4).

One writer; readers take :meth:`JoinGroup.view`. Cost: O(rows + combinations).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from engine.eddy.choices import ABOUT, POLICIES
from engine.eddy.statistics import ModuleStatistics
from engine.joins.bounds import NeededReaches, Reach, timestamps
from engine.joins.composites import Composites
from engine.joins.edge_indexes import EdgeIndexes
from engine.joins.estimated_order import JoinSizes, estimated_order
from engine.joins.key_index import KeyIndex, KeyIndexes
from engine.joins.lineage import AddedMarks, JoinLineage
from engine.joins.placing import JoinPlacing
from engine.joins.probe_orders import ProbeOrders
from engine.joins.query_marks import Wants
from engine.joins.shape import Shape
from engine.joins.steps import Ends, JoinStep, NewRowBounds, ProbeScratch, Route
from engine.joins.view import ROOM_MIN, JoinView, KeptComposites
from engine.joins.wanted_parts import WantedParts
from engine.model import attributes
from engine.model.attributes import Attribute, AttributeValue
from engine.model.batch import Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.usage import Usage
from engine.stems.postponing import ABOUT as ABOUT_PLACEMENT
from engine.stems.postponing import PLACEMENTS
from engine.stems.rows import Rows
from engine.windows.clauses import Window

COMPOSITES_MAX = 1_000_000_000
"""The greatest value that ``composites_max`` can be set to."""


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
        n = len(shape.inputs)
        self.shape = shape
        self.usage = Usage()
        self._indexes = EdgeIndexes(shape, indexes)
        self._needed = NeededReaches([source in timeless for source in shape.inputs])
        self._orders = ProbeOrders(shape, policy)
        self._composites = Composites(n, composites_max, capacities, self._orders.placing.found)
        self._lineage = JoinLineage(n, capacities)
        self._kept: tuple[Reach, ...] | None = None
        """What the composites that are kept were found for; None: none are."""
        self._floor = np.zeros(n, np.int64)
        self._end = np.zeros(n, np.int64)
        self._scratch = ProbeScratch(n, capacities.first(ROOM_MIN))
        self._view: JoinView | None = None

    def close(self) -> None:
        """Give back the indexes; it is not used any more."""
        self._indexes.close()

    @property
    def queries(self) -> int:
        """How many share it."""
        return self._orders.queries

    @property
    def keeps(self) -> bool:
        """Whether composites are kept, as long as they are not too many."""
        return self._composites.wanted

    @keeps.setter
    def keeps(self, keeps: bool) -> None:
        self._composites.want(keeps=keeps)

    @property
    def refused(self) -> bool:
        """Whether composites were too many to keep."""
        return self._composites.refused

    @property
    def placing(self) -> JoinPlacing:
        """Where conditions that call users' functions stand; may be set between steps."""
        return self._orders.placing

    # --- windows ----------------------------------------------------------------------------------

    def hold(self, windows: Sequence[Window], wants: Wants | None = None) -> None:
        """A query comes; windows: of each input. What it needs is there after the next step. wants: the rows
        of each input that it asks for; None: all.
        """
        self._change(windows, 1)
        self._lineage.hold(wants or (None,) * len(windows))

    def release(self, windows: Sequence[Window], wants: Wants | None = None) -> None:
        """A query goes; windows, wants: as it was held with."""
        self._change(windows, -1)
        self._lineage.release(wants or (None,) * len(windows))

    def awaited(self) -> Iterator[tuple[SourceName, set[int]]]:
        """The slots whose matches with the rows that are there must have been made when the next step is."""
        for place, source in enumerate(self.shape.inputs):
            yield source, self._lineage.awaited(place)

    def _change(self, windows: Sequence[Window], by: int) -> None:
        self._orders.queries += by
        self._orders.placing.queries = self._orders.queries
        self._needed.count(windows, by)
        self._composites.refused = False

    # --- rows -------------------------------------------------------------------------------------

    def advance(
        self, rows: Mapping[SourceName, Rows], ends: Mapping[SourceName, int], now_ms: int | None
    ) -> None:
        """Rows with ordinals below ``ends`` are visible at NOW. To be called after each step."""
        self._view = None
        inputs = [rows[source] for source in self.shape.inputs]
        bases = np.array([each.base for each in inputs], np.int64)
        seen = np.maximum(self._end, bases)  # what went unseen never comes
        self._end = np.array([ends[source] for source in self.shape.inputs], np.int64)
        marked = self._lineage.advance(inputs, self._end)
        self._orders.placing.rows_wanted = self._lineage.wanted
        self._indexes.take_in(inputs, marked.starts, self._end, self._lineage)  # build
        if marked.anew:
            self._let_go()
        composites = self._composites
        if not (composites.wanted and self.queries):
            self._let_go()
            return
        needed = self._needed.widest()
        if composites.are_too_many(self._floor):
            self._refuse()
        if composites.refused:
            return
        if now_ms is None:  # nothing is visible, so nothing is missing
            self._let_go()
            self._keep(needed)
            self._floor, self._end = bases, bases.copy()
            return
        before = np.maximum(self._floor, bases)
        self._floor = self._floors(inputs, needed, now_ms)
        if self._kept is None or not all(map(Reach.covers, self._kept, needed)):
            fits = self._begin_anew()
        else:
            fits = marked.added is None or self._add(marked.added, seen)
            fits = fits and self._probe(inputs, needed, before, seen)
        if not fits:
            self._refuse()
            return
        self._keep(needed)
        composites.drop_below(self._floor)

    def drop_below(self, source: SourceName, base: int) -> None:
        """Rows of a source are gone."""
        self._view = None
        self._indexes.registry.drop_below(source, base)
        for place, name in enumerate(self.shape.inputs):
            if name == source:
                self._floor[place] = max(self._floor[place], base)

    def forget(self) -> None:
        """The rows of an input begin elsewhere: combinations are found anew at the next step."""
        self._view = None
        self._lineage.forget()
        self._let_go()

    def _refuse(self) -> None:
        """They are too many to keep."""
        self._composites.refused = True
        self._let_go()

    def _let_go(self) -> None:
        self._composites.clear()
        self._keep(None)

    def _keep(self, reaches: tuple[Reach, ...] | None) -> None:
        self._kept = reaches
        self._orders.placing.finds = reaches is not None

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
        order = self._estimated(driver)
        return self._drive(NewRowBounds.none(len(self._end)), driver, order, start, self._floor, self._end)

    def _estimated(self, driver: int) -> list[JoinStep]:
        sizes = JoinSizes((self._end - self._floor).tolist(), self.shape.edges, self._indexes.unlike)
        return estimated_order(sizes, driver)

    def _add(self, added: AddedMarks, seen: Int64Array) -> bool:
        """The combinations of old rows that queries want which came: from the rows of one input that are
        wanted by more than before where each has one, else from those of every input in turn.
        """
        upper = np.minimum(added.end, seen)
        floor = np.minimum(self._floor, upper)
        now, bounds = self._lineage.view(), NewRowBounds.none(len(upper))
        assert now is not None
        drivers, is_alone = added.drivers()
        for driver in drivers:
            parts = WantedParts(driver, now, added, driver if is_alone else 0)
            order, start = self._estimated(driver), int(floor[driver])
            if not self._drive(bounds, driver, order, start, floor, upper, parts):
                return False
        return True

    def _probe(
        self, inputs: Sequence[Rows], needed: Sequence[Reach], floor: Int64Array, seen: Int64Array
    ) -> bool:
        """The combinations with a new row. floor: before the step, so that none is missed that comes and goes
        in it.
        """
        new = self._end - seen
        bounds_of = zip(seen.tolist(), self._end.tolist(), strict=True)
        drivers = [
            driver
            for driver, (start, stop) in enumerate(bounds_of)
            if start < stop and self._lineage.wants_some(driver, start, stop)
        ]
        if not drivers:
            return True
        low = self._low(inputs, needed, floor, seen)
        bounds = NewRowBounds(seen, np.cumsum(new) - new, low, np.zeros((len(new) - 1, 3), np.int64))
        for driver in drivers:
            upper = np.where(np.arange(len(new)) < driver, self._end, seen)
            upper[driver] = self._end[driver]
            if not self._drive(bounds, driver, self._orders.choose(driver), int(seen[driver]), floor, upper):
                return False
        return True

    def _low(
        self, inputs: Sequence[Rows], needed: Sequence[Reach], floor: Int64Array, seen: Int64Array
    ) -> Int64Array:
        """int64[inputs, new rows]: the first row of each input that may meet the new one."""
        low, at = self._scratch.low(int((self._end - seen).sum())), 0
        timeless = self._needed.timeless
        for place, rows in enumerate(inputs):
            instants = timestamps(rows, int(seen[place]), int(self._end[place]))
            for other, reach in enumerate(needed):
                out = low[other, at : at + len(instants)]
                if timeless[place] or timeless[other]:
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
        parts: WantedParts | None = None,
    ) -> bool:
        """The combinations of one input's rows from ``start`` on with the others', as far as a query wants
        them. parts: which of them; None: all that are wanted.
        """
        stop, composites = int(upper[driver]), self._composites
        end_of: Callable[[int, int], Ends] = self._indexes.end_of
        now = self._lineage.view()
        if parts is None and now is not None and self._lineage.is_narrow(floor):
            parts = WantedParts(driver, now)
        if parts is not None:
            end_of = parts.ends(end_of, start, stop)
        route = Route(self.shape, driver, order, end_of, bounds, floor, upper, self._scratch.lists)
        bounds.counted[:] = 0
        while start < stop:
            chunk = composites.chunk(floor, int(self._end.max()))
            began = start
            start, count = route.run(start, stop, chunk.origin, chunk.parts, chunk.count)
            if parts is not None:
                count = parts.keep(chunk.parts, chunk.count, count, chunk.origin)
            composites.wrote(chunk, count, self._end)
            if composites.are_too_many(self._floor):
                return False
            if start < stop and (start == began or 2 * chunk.room < len(chunk.parts)):
                composites.enlarge(floor)
        self._orders.observe(driver, order, bounds.counted)
        return True

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> JoinView:
        """The join as it stands; the same object until something changes."""
        if self._view is None:
            kept = None
            if self._kept is not None:
                composites = self._composites
                kept = KeptComposites(
                    composites.view(),
                    len(composites),
                    self._floor.copy(),
                    self._kept,
                    self._lineage.view(),
                )
            indexes, room = self._indexes, self._scratch.room
            self._view = JoinView(self.shape, indexes.view(), self._end, kept, indexes.is_plain, room)
        return self._view

    def indexes(self) -> Iterator[KeyIndex]:
        """The indexes that it probes, each once for each edge that uses it."""
        return iter(self._indexes)

    @property
    def nbytes(self) -> int:
        """Bytes of the composites and of the rows' lineage; the indexes' are the registry's."""
        return self._composites.nbytes + self._lineage.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it, and what can be set."""
        orders, composites, lineage = self._orders, self._composites, self._lineage
        given, passed, cut = orders.counted.tolist()
        keeps = "on" if self.keeps else "off"
        return (
            Attribute("composites", keeps, "whether combinations are kept as they are found", ("on", "off")),
            Attribute(
                "policy", orders.policy, f"the order in which inputs are probed: {ABOUT}", tuple(POLICIES)
            ),
            Attribute("placement", orders.placing.placement, ABOUT_PLACEMENT, PLACEMENTS),
            Attribute(
                "composites_max",
                composites.most,
                "so many combinations are kept at most; beyond, all are let go of and answers are probed for",
                bounds=attributes.NumberRange(0, COMPOSITES_MAX),
                unit="combinations",
            ),
            Attribute("queries", self.queries, "standing queries that share the join"),
            Attribute("composites_kept", len(composites), "combinations that are kept"),
            Attribute("composites_bytes", composites.nbytes, "bytes that they take"),
            Attribute("composites_found", composites.found, "combinations that were found"),
            Attribute("composites_refused", self.refused, "too many to keep: answers are probed for"),
            Attribute("rows_seen", lineage.seen, "rows of its inputs that came"),
            Attribute(
                "rows_wanted", lineage.wanted, "of them rows that a query wants, which alone are combined"
            ),
            Attribute("probes", given, "look-ups of a key in an index"),
            Attribute("partners", passed, "rows that they found"),
            Attribute("cut_by_window", cut, "probes that ended at the lower bound of a window"),
            Attribute("probes_saved", orders.saved, "look-ups that queries would make apart from each other"),
        )

    def statistics(self) -> tuple[ModuleStatistics, ...]:
        """The lineage's, then as :meth:`engine.joins.probe_orders.ProbeOrders.statistics`."""
        return (self._lineage.statistics(self.queries), *self._orders.statistics())

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Set one to a value that it accepts."""
        match name:
            case "policy":
                self._orders.set_policy(str(value))
            case "placement":
                self._orders.placing.placement = str(value)
            case "composites":
                self._composites.want(keeps=value == "on")
            case "composites_max" if isinstance(value, int):
                self._composites.keep_at_most(value)
            case _:
                raise KeyError(name)

    def _check(self, rows: Mapping[SourceName, Rows] | None = None) -> None:
        """rows: as at the last step; None: who wants them is not looked at."""
        for index in self._indexes:
            index._check()
        if rows is not None:
            inputs = [rows[source] for source in self.shape.inputs]
            self._lineage._check(inputs)
            self._indexes._check(inputs, self._end, self._lineage)
        for parts, count, origin in self._composites.view():
            assert ((parts[:count] + origin) < self._end).all()
