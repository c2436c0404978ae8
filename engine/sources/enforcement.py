"""What the constraints of a stream ask of its rows.

Rows are checked in the order in which they enter (:mod:`engine.kernels.constraints`), so that batches do not
matter. Those that break a promise are withheld. What is kept is small
(:mod:`engine.sources.constraint_values`). After a restart all but bounds and open values is worked out from
the retained rows, of which the last k + 1 stay for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.kernels import constraints as kernels
from engine.model.batch import Batch, Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.constraint import References, Unique
from engine.model.persistence import ConstraintState, PromiseState
from engine.model.source import Stream
from engine.model.step import Position, Violations
from engine.sources.constraint_values import ConstraintValues
from engine.sources.constraint_violations import ConstraintViolations
from engine.sources.past_values import VALUES_MAX
from engine.windows.retention import Hold


class Enforcement:
    """Checks the rows of one stream with constraints. One owner. past_max: so many values of a constraint are
    known beyond RETAIN.
    """

    def __init__(self, stream: Stream, past_max: int = VALUES_MAX, capacities: Capacities = USUAL) -> None:
        self.stream = stream
        self.violations = ConstraintViolations(stream)
        self._values = ConstraintValues(stream, past_max, capacities)
        self.rows = 0
        """Rows that entered: each has a number, from 0."""
        self.waited: list[int | None] = [None] * len(stream.constraints)
        """By constraint, for REFERENCES, the most rows or ms that a row waited for its match since the start.
        """
        self.unchecked_from: dict[int, int] = {}
        """By constraint REFERENCES that is checked here: the number of the first row of which it is not known
        whether it keeps the constraint.
        """
        self.unchecked = [0] * len(stream.constraints)
        """By constraint, for REFERENCES, rows that were not checked, since too many waited."""
        self.referrers: list[Callable[[], int | None]] = []
        """One function for each stream that refers to this one: the instant from which on its rows ask for
        matches.
        """

    # --- rows -------------------------------------------------------------------------------------

    def admit(self, rows: Batch, position: Position) -> tuple[Batch, tuple[Violations, ...]]:
        """Rows that NOW has reached, in order: those that enter, and those that broke a promise: they do not,
        or do where a value came again after RETAIN. O(rows * constraints).
        """
        n, checked = len(rows), self._values.checked
        if not n or not checked:
            self.rows += n
            return rows, ()
        self.rows, values, broken, came = self._values.enforce(rows, self.rows)
        again = self._came_again(rows, values, came, position)
        last_ms = int(rows.timestamp[-1])
        if self._values.is_to_compact:
            self._values.compact(min([last_ms, *self._asked_ms()]))
        if (broken == kernels.KEPT).all():
            return rows, again
        wrong = np.flatnonzero(broken != kernels.KEPT)
        self.violations.withheld_ms = int(rows.timestamp[wrong[-1]])
        reasons = self.violations.note([checked[one][0] for one in broken[wrong].tolist()], position)
        kept = rows.take(np.flatnonzero(broken == kernels.KEPT))
        return kept, (Violations(self.stream.name, rows.take(wrong), reasons), *again)

    def _came_again(
        self, rows: Batch, values: Int64Array, came: NDArray[np.int8], position: Position
    ) -> tuple[Violations, ...]:
        """Rows that entered with a value that was there, and over, longer ago than RETAIN: whoever let go of
        something since it could not come again lacks them. They are in the stream.
        """
        self._values.mark_again(rows, values, came)
        which, broken = np.nonzero((came == kernels.AGAIN).T)
        if not len(which):
            return ()
        checked = self._values.checked
        reasons = self.violations.note([checked[c][0] for c in broken.tolist()], position)
        told = tuple(f"{reason}, after RETAIN; it has entered" for reason in reasons)
        return (Violations(self.stream.name, rows.take(which), told, withheld=False, again=True),)

    @property
    def forgotten(self) -> tuple[int, ...]:
        """By constraint, how many values are not known any more: that one comes again is not told; of
        REFERENCES, how many rows were not checked.
        """
        found = self.unchecked.copy()
        for (number, _), past in zip(self._values.checked, self._values.past, strict=True):
            found[number] = past.forgotten
        return tuple(found)

    def learn(self, rows: Batch) -> None:
        """History came back: its values were there. It breaks nothing."""
        self._values.learn(rows)

    def found(self, unique: Unique, values: Sequence[Column]) -> tuple[Int64Array, Int64Array]:
        """As :meth:`engine.sources.constraint_values.ConstraintValues.found`."""
        return self._values.found(unique, values)

    # --- the store's side -------------------------------------------------------------------------

    def holds(self, now_ms: int) -> list[Hold]:
        """The rows that a restart needs: those whose values decide whether the next ones break a promise, and
        what those that are not checked may find.
        """
        unchecked = self.rows - min(self.unchecked_from.values(), default=self.rows)
        needed = max(self._values.rows_needed, unchecked)
        return [Hold(now_ms, 0, needed), *(Hold(one, 0, 0) for one in self._asked_ms())]

    def _asked_ms(self) -> list[int]:
        """The instants from which on streams that refer to this one ask for matches."""
        return [found for one in self.referrers if (found := one()) is not None]

    def state(self, held: int) -> PromiseState:
        """The state to be saved. held: how many rows are retained, from which the rest is known."""
        first, violations = self.rows - held, self.violations
        found = [ConstraintState(broken) for broken in violations.broken]
        for c, (number, _) in enumerate(self._values.checked):
            found[number] = self._values.state_of(c, violations.broken[number], first)
        for number, row in self.unchecked_from.items():
            missed = self.unchecked[number]
            found[number] = ConstraintState(violations.broken[number], unchecked_from=row, forgotten=missed)
        touched = tuple(sorted(violations.touched))
        return PromiseState(self.rows, tuple(found), violations.since, violations.withheld_ms, touched)

    def restore(self, saved: PromiseState, rows: Iterable[tuple[int, Batch]], end: int) -> None:
        """As saved. rows: the retained rows with the ordinal of the first of each batch; end: the ordinal
        behind the last. O(retained rows * constraints).
        """
        self.rows, values = saved.rows, self._values
        self.violations.restore(saved)
        self.unchecked_from = {
            number: one.unchecked_from
            for number, one in enumerate(saved.constraints)
            if isinstance(self.stream.constraints[number], References) and one.unchecked_from is not None
        }
        for number in self.unchecked_from:
            self.unchecked[number] = saved.constraints[number].forgotten
        of_rows = [saved.constraints[number] for number, _ in values.checked]
        opened = [{last: (born, own) for last, born, own in one.open} for one in of_rows]
        for c, one in enumerate(of_rows):
            values.restore_of(c, one)
        found: list[list[tuple[int, int, int]]] = [[] for _ in of_rows]
        for ordinal, batch in rows:
            first = ordinal + self.rows - end
            for c, ids in enumerate(values.retained(batch, first)):
                for last in opened[c].keys() & range(first, first + len(ids)):
                    found[c].append((int(ids[last - first]), *opened[c][last]))
        for c, again in enumerate(found):
            values.reopen(c, again)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes

    def _check(self) -> None:
        self._values._check()
