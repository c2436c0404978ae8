"""What a query needs in a step to come, made beside the shard before it: the state of its operators, and its
whole answer, which that step tells, takes back or compares.

The changes of a join or of groups come from state that is made from all rows of their windows, which takes
long where these are many; so does an answer with many rows, or with dear expressions. Both are made from the
rows as they stood after some step, which are immutable: so in any thread. State is made by a graph of the
query alone (:class:`engine.dataflow.graph.Graph`). The transitions of the steps that follow are kept, and go
through that graph; what it tells is told to nobody. When the query comes the graph of its sources takes its
nodes over, with their state. State is a function of the retained rows and NOW, so that it is what it would be
if it were made then.

The answer as of that step is kept up with its changes (:mod:`engine.changes.folded_answer`), all of them,
whatever the operator of the query lets through: so another graph tells them where that is not ``changes``. Of
a query that stands the steps tell them, where they tell all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from engine.changes.folded_answer import FoldedAnswer
from engine.changes.transition import Transition
from engine.dataflow.graph import Graph
from engine.model.batch import Int32Array
from engine.model.changes import Changes
from engine.model.interruption import CalledOff, interruptible
from engine.model.limits import Limits
from engine.queries.strategist import PhysicalChoice
from engine.queries.subscriber import Subscriber
from engine.standing.query import SetKey
from tureen.errors import TureenError


@dataclass(slots=True)
class AnswerBeside:
    """Makes a whole answer, and keeps it up. graph: tells its changes; None: the steps do. evaluate: works it
    out as of where the nursery begins. copies: whether its equal rows are numbered.
    """

    graph: Graph | None
    evaluate: Callable[[], pa.Table]
    copies: bool
    # None: not made, or not true.
    kept: FoldedAnswer | None = None
    # Why there is none: it is refused.
    refusal: TureenError | None = None

    def make(self) -> None:
        """Work it out. Raises what fails unexpectedly."""
        try:
            self.kept = FoldedAnswer(self.evaluate(), copies=self.copies)
        except TureenError as refused:
            self.refusal = refused

    def take(self, changes: Iterable[Changes]) -> None:
        """It changes."""
        for one in changes:
            if self.kept is not None:
                self.kept.take(one.table, one.weights)

    def lose(self) -> None:
        """What is kept is not true."""
        self.kept = self.refusal = None


@dataclass(slots=True)
class Nursery:
    """Makes what one query needs before the step that brings it, alters, pauses or removes it. :meth:`run` is
    called once, in any thread; everything else by the engine's owner.
    """

    # The set of sources that the query reads.
    key: SetKey
    # A graph of the query alone, to be taken over; None: there is no state to make.
    graph: Graph | None
    # What the graph is made by.
    way: PhysicalChoice
    subscriber: Subscriber
    # The transition of no time at which the state begins.
    stands: Transition
    limits: Limits
    # The whole answer; None: none is told.
    answer: AnswerBeside | None = None
    # Whether run() is over.
    is_ready: bool = False
    # Whether the state is not true; it is then made when the query comes.
    is_lost: bool = False
    # Whether nobody wants it any more.
    is_given_up: bool = False
    # Why there is no answer: it took too long.
    refusal: TureenError | None = None
    # What it has to go through yet: a transition, with NOW at its end in ms, or the changes of a step.
    _ahead: deque[tuple[Transition, int] | Changes] = field(default_factory=deque)

    @property
    def is_usable(self) -> bool:
        """Whether its state may be taken over."""
        return self.is_ready and not self.is_lost

    @property
    def is_behind(self) -> bool:
        """Whether transitions are left that it has to go through."""
        return bool(self._ahead)

    @property
    def _graphs(self) -> list[Graph]:
        """The graphs that transitions go through, each once."""
        graphs = [self.graph, None if self.answer is None else self.answer.graph]
        return list(dict.fromkeys(graph for graph in graphs if graph is not None))

    def run(self) -> None:
        """Make it, and go through what has come meanwhile. Raises what fails unexpectedly."""
        try:
            with interruptible(self._may_go_on):
                for graph in self._graphs:
                    graph.hydrate(self.stands, self.limits)
                if self.answer is not None:
                    self.answer.make()
                while self.some():
                    self._may_go_on()
                if self.answer is not None and self.answer.kept is not None:
                    self.answer.kept.settle()
        except CalledOff:
            self.is_lost = True
        except Exception:
            self.is_lost = True
            raise
        finally:
            self.is_ready = True

    def _may_go_on(self) -> None:
        if self.is_given_up or self.is_lost:
            raise CalledOff

    def give_up(self) -> None:
        """Nobody wants it any more: a thread that makes it ends soon."""
        self.is_given_up = True

    def refuse(self, refusal: TureenError) -> None:
        """It takes too long: there is no answer. A thread that makes it ends soon, and is not waited for."""
        self.refusal = refusal
        self.give_up()
        self.lose()
        self.is_ready = True

    def came(self, transition: Transition, now_ms: int) -> None:
        """The sources took a step."""
        if not self.is_lost and self._graphs:
            self._ahead.append((transition, now_ms))

    def told(self, changes: Changes) -> None:
        """A step told changes of the query."""
        if not self.is_lost and self.answer is not None and self.answer.graph is None:
            self._ahead.append(changes)

    def lose(self) -> None:
        """Its rows have other ordinals, or others came."""
        self.is_lost = True
        self._ahead.clear()

    def some(self) -> bool:
        """Go through the next transition. Returns whether there was one."""
        try:
            ahead = self._ahead.popleft()
        except IndexError:
            return False
        if isinstance(ahead, Changes):
            assert self.answer is not None
            self.answer.take([ahead])
            return True
        transition, now_ms = ahead
        for graph in self._graphs:
            try:
                self._advance(graph, transition, now_ms)
            except Exception:  # noqa: BLE001  (made when the query comes; if that fails, too, it ends)
                self.lose()
                break
        return True

    def _advance(self, graph: Graph, transition: Transition, now_ms: int) -> None:
        broken: dict[str, Exception] = {}
        changes = list(graph.advance(transition, self.limits, now_ms, broken))
        if self.answer is not None and self.answer.graph is graph:
            if broken:  # what changed cannot be told
                self.answer.lose()
            self.answer.take(changes)

    def rows(self) -> tuple[pa.Table, Int32Array | None] | TureenError | None:
        """The whole answer as of the last transition, and which copy each row is; or why it is refused; None:
        it is to be worked out. What fails unexpectedly makes it so.
        """
        if self.refusal is not None:
            return self.refusal
        while self.is_usable and self.some():
            pass
        if self.answer is None or not self.is_usable:
            return None
        if self.answer.kept is None:
            return self.answer.refusal
        try:
            return self.answer.kept.now()
        except Exception:  # noqa: BLE001  (it is worked out in the step; if that fails, too, it ends)
            return None
