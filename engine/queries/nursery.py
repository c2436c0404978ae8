"""State of the operators of a followed query, made beside the shard before the query comes.

The changes of a join or of groups come from state that is made from all rows of their windows, which takes
long where these are many. It is made by a graph of the query alone (:class:`engine.dataflow.graph.Graph`),
from the rows as they stood after some step, which are immutable: so in any thread. The transitions of the
steps that follow are kept, and the graph goes through them; what it tells is told to nobody. When the query
comes the graph of its sources takes its nodes over, with their state. State is a function of the retained
rows and NOW, so that it is what it would be if it were made then.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from engine.changes.transition import Transition
from engine.dataflow.graph import Graph
from engine.model.changes import Operator
from engine.model.limits import Limits
from engine.queries.strategist import PhysicalChoice
from engine.standing.query import SetKey


@dataclass(slots=True)
class Nursery:
    """Makes the state of one query's operators before the query comes. :meth:`run` is called once, in any
    thread; everything else by the engine's owner.
    """

    # The set of sources that the query reads.
    key: SetKey
    # A graph of the query alone.
    graph: Graph
    # What the graph is made by: the way, the operator of the query, and whether equal rows are told apart.
    way: PhysicalChoice
    operator: Operator
    copies: bool
    # The transition of no time at which the state begins.
    stands: Transition
    limits: Limits
    # Whether run() is over.
    is_ready: bool = False
    # Whether the state is not true; it is then made when the query comes.
    is_lost: bool = False
    # Transitions that the graph has to go through yet, each with NOW at its end, ms.
    _ahead: deque[tuple[Transition, int]] = field(default_factory=deque)

    @property
    def is_usable(self) -> bool:
        """Whether its state may be taken over."""
        return self.is_ready and not self.is_lost

    @property
    def is_behind(self) -> bool:
        """Whether transitions are left that it has to go through."""
        return bool(self._ahead)

    def run(self) -> None:
        """Make the state, and go through the transitions that have come meanwhile."""
        try:
            self.graph.hydrate(self.stands, self.limits)
            while self.some():
                pass
        except Exception:
            self.is_lost = True
            raise
        finally:
            self.is_ready = True

    def came(self, transition: Transition, now_ms: int) -> None:
        """The sources took a step."""
        if not self.is_lost:
            self._ahead.append((transition, now_ms))

    def lose(self) -> None:
        """Its rows have other ordinals, or others came."""
        self.is_lost = True
        self._ahead.clear()

    def some(self) -> bool:
        """Go through the next transition. Returns whether there was one."""
        try:
            transition, now_ms = self._ahead.popleft()
        except IndexError:
            return False
        try:
            for _ in self.graph.advance(transition, self.limits, now_ms, {}):
                pass
        except Exception:  # noqa: BLE001  (made when the query comes; if that fails, too, it ends)
            self.lose()
        return True
