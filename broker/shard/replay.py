"""Replayed steps and the changes they caused, of which some are still to be written.

What a step changed was written with it, so that a replay works out no changes, but for the steps whose record
says that some were to be written later: these are made again, and dropped as far as later records say that
they were written. What is left when the journal ends is what the next owner goes on with.

Of sources that no longer have every record (a compacted table, history that an archive has lost) the changes
may be others than those which were half written. Queries over them that have some left cannot go on.
"""

from __future__ import annotations

from broker.shard.pending import Pending, portions
from engine.engine import Engine
from engine.model.interruption import Check, interruptible
from engine.model.step import Rejoin, Step, Unregister, Written
from engine.views.view import View
from topics.destination import Destination
from topics.journal import StepRecord
from topics.outputs import destination
from tureen.errors import TureenError, UnknownQuery
from tureen.protocol import TopicNames


class Output:
    """Collects the output of one replay. pending: what is left to be written after the steps so far."""

    def __init__(self, engine: Engine, names: TopicNames, check: Check) -> None:
        """check: called between pieces of what takes long; what it raises ends the replay."""
        self.pending = Pending()
        self._check = check
        self._engine = engine
        self._names = names
        self._differing: set[str] = set()
        self._doubted: dict[tuple[int, str], str] = {}

    def differs(self, source: str) -> None:
        """Not all of the rows that a source had are there again."""
        self._differing.add(source)

    def replay(self, record: StepRecord, step: Step) -> None:
        """Apply a step."""
        engine, deferral = self._engine, record.deferral
        self.pending.drop(deferral.dropped)
        engine.tells = deferral.some_later
        before = engine.view() if engine.tells else None
        engine.enqueue(step)
        if engine.tells and isinstance(step.body, Rejoin):
            with interruptible(self._check):  # what it tells is worked out here
                (result,) = engine.run()
        else:
            (result,) = engine.run()
        if isinstance(step.body, Written):
            for progress in step.body.output:
                if not self.pending.wrote(progress):
                    self._doubted[progress.sequence, progress.query_id] = (
                        "there were others when it was written"
                    )
        if before is None:
            return
        view = before if isinstance(step.body, Unregister) else engine.view()
        made = portions(result, lambda query_id: self._destination(view, query_id), deferral.is_later)
        same = sum(portion.rows for portion in made) == deferral.rows
        for portion in made:
            sources = view.query(portion.query_id).sources
            key = portion.position.sequence, portion.query_id
            if not same:
                self._doubted[key] = "there were more or fewer when the step was made"
            elif gone := self._differing.intersection(sources):
                self._doubted[key] = f"rows of {', '.join(sorted(gone))} are no longer there"
        self.pending.put(made)

    def _destination(self, view: View, query_id: str) -> Destination | None:
        try:
            return destination(self._names, view.output(query_id))
        except UnknownQuery:
            return None

    def lost(self) -> dict[str, TureenError]:
        """Queries whose changes that are left may be others than those that were to be written, and why."""
        left = {(one.position.sequence, one.query_id) for one in self.pending}
        return {
            query_id: TureenError(f"changes that were not written yet cannot be computed again: {why}")
            for (sequence, query_id), why in self._doubted.items()
            if (sequence, query_id) in left
        }
