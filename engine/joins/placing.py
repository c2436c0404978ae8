"""Where conditions with users' functions stand beside a join: what the choice goes by, and who waits for it.

See :mod:`engine.stems.postponing`, which chooses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.eddy.policies import FADING
from engine.joins.met_rows import MetRows
from engine.model.batch import Int32Array, Int64Array
from engine.model.usage import Usage
from engine.stems.postponing import PLACEMENTS

ALIKE = 0.01
"""Steps whose numbers of rows vary less, by the square of their mean, do not tell what a row takes."""


@dataclass(slots=True)
class JoiningCost:
    """What joining rows took lately, by the steps of a join: what a row takes is told apart from what a step
    takes whatever its rows, by a line of least squares through steps of unlike sizes. Sums over steps, which
    fade: how many, rows, ns, and products of these.
    """

    steps: float = 0.0
    rows: float = 0.0
    ns: float = 0.0
    rows_rows: float = 0.0
    rows_ns: float = 0.0

    @property
    def row_ns(self) -> float | None:
        """What a row takes; None: nothing was measured."""
        if not self.rows or not self.ns:
            return None
        varying = self.steps * self.rows_rows - self.rows**2
        if varying <= ALIKE * self.rows**2:
            return self.ns / self.rows
        return max(0.0, (self.steps * self.rows_ns - self.rows * self.ns) / varying)

    def add(self, ns: float, rows: int) -> None:
        """A step took so long, in which so many rows came that a query wants."""
        if ns:
            self.steps = FADING * self.steps + 1
            self.rows = FADING * self.rows + rows
            self.ns = FADING * self.ns + ns
            self.rows_rows = FADING * self.rows_rows + rows**2
            self.rows_ns = FADING * self.rows_ns + rows * ns


@dataclass(slots=True, eq=False)
class JoinPlacing:
    """One owner, as the join. See :class:`engine.stems.postponing.PostponingJoin`."""

    placement: str = PLACEMENTS[0]
    # Whether combinations are found as rows come: those of all rows of the last step were.
    finds: bool = False
    # How many share the join.
    queries: int = 0
    # Rows that a query wanted, since the join came.
    rows_wanted: int = 0
    cost: JoiningCost = field(default_factory=JoiningCost)
    # Rows that have a partner, while somebody asks for these.
    _met: MetRows | None = None

    @property
    def row_ns(self) -> float | None:
        """The share of one query in what joining a row took lately: a row is spared where all refuse it.

        None: it was not measured.
        """
        row_ns = self.cost.row_ns
        return None if row_ns is None else row_ns / max(1, self.queries)

    @contextmanager
    def measured(self, usage: Usage) -> Iterator[None]:
        """A step of the join: what it takes, by its usage, is divided among the rows that a query wants."""
        spent, rows = usage.cpu_ns, self.rows_wanted
        yield
        self.cost.add(usage.cpu_ns - spent, self.rows_wanted - rows)

    def look_out(self, places: Collection[int]) -> None:
        """Note the rows of these inputs that are in combinations found from now on."""
        self._met = MetRows(places) if places else None

    def found(self, parts: Int32Array, origin: Int64Array) -> None:
        """Combinations were found: int32[n, inputs], less origin, int64[inputs]."""
        if self._met is not None:
            self._met.note(parts, origin)

    def met(self) -> Iterator[tuple[int, Int64Array]]:
        """Yields (input, ordinals, ascending) of those that were noted, which are forgotten."""
        met, self._met = self._met, None
        return iter(()) if met is None else met.rows()
