"""What a step does, in order: :data:`PHASES`, and :data:`BACKFILL_PHASES` where history comes back.

A feature that has something to do with each step stands in these lists, at its place; nothing of a step is
done elsewhere. A step is atomic: what its phases leave of the parts is what readers see next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.model.source import SourceName
from engine.model.step import Allocate, Alter, Backfill, Step, StepResult
from engine.parts import Parts
from engine.queries.followed_graphs import Marks, rows_of
from engine.queries.join_retention import BeforeRetention
from engine.queries.subscriptions import Answers
from engine.queries.telling import PendingOutput
from engine.stems.rows import Rows
from engine.step_bodies import StepBodies
from tureen.errors import InternalError


class StepRun:
    """One step that is applied. ``touched``: the sources that it may move, or take rows from; None: any, and
    there may be others then.
    """

    def __init__(self, parts: Parts, bodies: StepBodies, step: Step, *, any_source: bool) -> None:
        """any_source: what it touches is not known: the engine came from a store."""
        self.parts = parts
        self.step = step
        self.touched = None if any_source else parts.touched(step.body)
        self._bodies = bodies
        self._told = PendingOutput(broken=dict(parts.defects.errors()))
        self._result = StepResult(step.position)
        self._marks: Marks = {}
        self._rows: Mapping[SourceName, Rows] = {}
        self._before_retention: BeforeRetention = {}
        self._answers: Answers = {}

    def apply(self) -> StepResult:
        """Run the phases."""
        is_history = isinstance(self.step.body, Backfill)
        for phase in BACKFILL_PHASES if is_history else PHASES:
            phase(self)
            if is_history and self._result.failed:  # the source is as it was
                return self._result
        changes = self.parts.tags.approximations.put_on(self._told.changes)
        return replace(self._result, changes=changes, broken=self._told.broken)

    @property
    def _backfilled(self) -> SourceName:
        """The source to which history comes."""
        assert isinstance(self.step.body, Backfill)
        return self.step.body.source

    # --- before -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """The clock, the number of the step, and what must be known from before it."""
        parts = self.parts
        parts.progress.clock_ms = max(parts.progress.clock_ms, self.step.clock_ms)
        parts.following.begin(self.step.position.sequence)
        if parts.progress.tells:
            parts.following.preferences.begin(parts.view)

    def note_answers(self) -> None:
        """History comes to a source: how answers over it stand."""
        name, parts = self._backfilled, self.parts
        parts.source(name)
        if parts.progress.tells:
            self._answers = parts.following.answers_over(name, parts.sets, parts.view())

    def outdate(self) -> None:
        """What was seen, and what the store has, is no more as it was."""
        parts = self.parts
        parts.outdate(self.touched)
        if self.touched is None:
            parts.stored.unsaved, parts.progress.may_owe = None, True
        elif parts.stored.unsaved is not None:
            parts.stored.unsaved.update(self.touched)

    def mark(self) -> None:
        """How the sets with followed queries stand."""
        parts = self.parts
        self._marks = parts.following.graphs.marks(parts.sets, self.touched, tells=parts.progress.tells)

    # --- the step itself --------------------------------------------------------------------------

    def carry_out(self) -> None:
        """The body of the step."""
        body = self.step.body
        self._result = self._bodies.carry_out(body, self.step.position, self._told)
        if isinstance(body, Alter | Allocate) and self.parts.progress.tells:
            # Sets that came with it are marked, too; the others stand where they did before the step.
            self._marks = {**self.parts.following.graphs.marks(self.parts.sets, None), **self._marks}

    def forget_summaries(self) -> None:
        """Summaries that were dropped go where no query uses them any more."""
        if self.touched is None:
            self._bodies.forget_summaries()

    def move_on(self) -> None:
        """The engine is past this step."""
        self.parts.progress.position = self.step.position
        if not self.parts.sources:  # the clock is saved with them
            self.parts.progress.clock_ms = 0

    def retain(self) -> None:
        """Sources let go of rows that nobody needs; what tells needs of them is taken before."""
        parts = self.parts
        self._rows = rows_of(parts.sets, self._marks)
        self._before_retention = parts.following.retention.before(self.touched)
        parts.sets.retain(self.touched)

    def replant(self) -> None:
        """Queries beside one that failed stand anew."""
        if self.parts.defects:
            for query in self.parts.sets.replanted():
                self.parts.queries[query.query_id] = query

    def renumber(self) -> None:
        """History came to a source: its rows have other ordinals, and all that is kept of them is made anew.
        O(retained rows) a step, which is why history comes in large ones.
        """
        parts = self.parts
        parts.sets.retain(None)
        for query in parts.sets.renumbered(self._backfilled):
            parts.queries[query.query_id] = query

    # --- what is told -----------------------------------------------------------------------------

    def tell_changes(self) -> None:
        """Followed queries: what changed; joins then hold what they need of rows that went."""
        parts = self.parts
        parts.following.graphs.advance(
            self._marks, self._rows, parts.sets, self._told, self.step.position, tells=parts.progress.tells
        )
        parts.following.retention.hold(self._before_retention, self.step.position.sequence)

    def tell_history(self) -> None:
        """Followed queries: how their answers differ from those before the history came."""
        parts = self.parts
        parts.following.tell_history(self._backfilled, self._answers, parts.view(), self._told)

    def tell_whole(self) -> None:
        """Whole answers of queries that began, and how those of queries that were resumed differ."""
        told, parts = self._told, self.parts
        if told.began:
            parts.following.tell_whole(told.began, parts.view(), "snapshot", told)
        if told.resumed:
            parts.following.tell_resumed(told.resumed, parts.view(), told)

    def tell_finds(self) -> None:
        """Followed queries with a preference: what was found for them."""
        parts = self.parts
        if parts.progress.tells:
            parts.following.preferences.tell(parts.sets, parts.view, self._told)
        else:
            parts.following.preferences.forget()

    def end_broken(self) -> None:
        """Queries whose changes could not be told are followed no more."""
        parts, broken = self.parts, self._told.broken
        broken |= parts.defects.errors()
        for query_id, error in broken.items():
            query = parts.queries.get(query_id)
            if query is not None:
                parts.following.gone(query)
                if isinstance(error, InternalError):
                    parts.defects.note([query_id], error)

    def tag(self) -> None:
        """Say what of the answers is not exact now."""
        violations = self._result.violations
        for name in {one.source for one in violations}:
            self.parts.tags.look_at_readers(name, [one for one in violations if one.source == name])
        if self._told.changes:
            self.parts.tags.tag_finds()


Phase = Callable[[StepRun], None]

PHASES: tuple[Phase, ...] = (
    StepRun.begin,
    StepRun.outdate,
    StepRun.mark,
    StepRun.carry_out,
    StepRun.forget_summaries,
    StepRun.move_on,
    StepRun.retain,
    StepRun.replant,
    StepRun.tell_changes,
    StepRun.tell_whole,
    StepRun.tell_finds,
    StepRun.end_broken,
    StepRun.tag,
)

BACKFILL_PHASES: tuple[Phase, ...] = (
    StepRun.begin,
    StepRun.note_answers,
    StepRun.outdate,
    StepRun.move_on,
    StepRun.carry_out,
    StepRun.renumber,
    StepRun.tell_history,
    StepRun.tell_finds,
    StepRun.end_broken,
    StepRun.tag,
)
