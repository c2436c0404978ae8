"""A shard: one engine with its store, its journal and its streams, in one thread.

The loop makes steps of what came (commands, records, history, the clock), journals them, shows them, saves:

    poll, commands -> step -> engine.run -> transaction {steps, late rows, dead letters} -> view -> save

The engine runs ahead of the transaction, since late rows are known only then, but its view is published after
it, and the store is written after it. So what is shown and what is saved is always journalled.

Here stands what other threads see of it. It is made of parts (:mod:`.parts`), each a module of its own and
used by the shard's thread: what others want (:mod:`.inbox`), what commands do (:mod:`.execution`), what is
taken up (:mod:`.ingestion`), how a step is made and written (:mod:`.steps`, :mod:`.outbox`), when the store
is written (:mod:`.saving`). Its life (:mod:`.lifecycle`) is to start (:mod:`.starting`), to serve, in the
order that :mod:`.serving` says, and to end.

While Kafka is away, or the disk is full, the shard tries on, answers from the last view, and says in
``stall`` what it waits for (:mod:`.stalls`). Rows are then taken up where they were left. A defect or a
store that cannot be read ends this shard alone (``failed``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from broker.base.internal import Outcome
from broker.runtime.liveness import Pulse
from broker.shard.current_view import CurrentView
from broker.shard.lifecycle import Lifecycle, State
from broker.shard.parts import ShardParts
from broker.shard.questions import Asked, Found
from broker.shard.serving import Serving
from broker.shard.setup import ShardSetup
from broker.shard.shard_command import ShardCommand
from broker.shard.stalls import Stall
from broker.shard.starting import Starting
from broker.shard.upkeep import Upkeep
from broker.shard.work_attributes import limit_work, work_attributes
from engine.engine import Engine
from engine.model.attributes import Attribute, AttributeValue, edits
from engine.model.source import Derived, SourceName, Stream
from engine.model.step import Position
from engine.model.summary import SummaryName
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.summaries import NamedSummary
from engine.views.view import View
from tureen.errors import ChangesBroken, InternalError, ShardHeld

MODULE = "shard"
"""Name of a shard as an entity, behind the shard's number."""


class Shard(threading.Thread):
    """Public attributes may be read from any thread; :meth:`submit`, :meth:`stop`, :meth:`view` called."""

    def __init__(
        self,
        number: int,
        setup: ShardSetup,
        pulse: Pulse,
        held: ShardHeld | None,
    ) -> None:
        """pulse: the thread's signs of life. held: why it does not come back by itself."""
        super().__init__(name=f"shard-{number}", daemon=True)
        setup = replace(setup, engines=replace(setup.engines, timer=pulse.timer))
        self._parts = parts = ShardParts.build(number, setup, pulse)
        self.number = number
        self.counts = parts.context.counts
        self.pulse = pulse
        """The signs of life of its thread."""
        self.asked = Asked(setup.settings.revise_interval_ms / 1_000)
        self.upkeep = Upkeep(parts.context, self.asked)
        self.preparations = parts.preparations
        """Commands that are worked out before their step: what may be read of them."""
        self.ingestion = parts.ingestion
        """What it takes up: what may be read of queues, grants and history."""
        self._current = CurrentView(parts.steps, parts.streams)
        self._starting = Starting(parts, setup, held, self._current)
        self.recovered = self._starting.recovered
        """Done once it is known what stands."""
        serving = Serving(parts, self._current, self.upkeep, setup)
        self._lifecycle = Lifecycle(parts, setup, self._starting, serving)

    def run(self) -> None:
        self._lifecycle.run()

    # --- life -------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """How far it is in its life."""
        return self._lifecycle.state

    @property
    def held(self) -> ShardHeld | None:
        """Why it does not come back by itself, while that is so."""
        return self._starting.held

    @property
    def stall(self) -> Stall | None:
        """What keeps the shard from going on; None while nothing does."""
        return self._lifecycle.stall

    @property
    def life(self) -> str:
        """What tells its journal from others, as change positions have it; once recovered."""
        return self._starting.life

    @property
    def lost_history(self) -> Mapping[str, dict[str, Any]]:
        """Streams that came back without rows which the archive had given them, and why."""
        return self._starting.lost_history

    @property
    def epoch(self) -> int:
        """Which owner of the shard this is; 0 until it has recovered."""
        return self._parts.steps.epoch

    @property
    def saved_position(self) -> Position | None:
        """Position of the last step that is in the store."""
        return self._parts.saving.position

    def retry(self) -> None:
        """Where it is held: try to come back."""
        self._starting.retry()

    def stop(self) -> None:
        """Finish the step at hand, save, end."""
        self._parts.context.stalls.stop()
        self._parts.inbox.wake()

    # --- what it shows ----------------------------------------------------------------------------

    def view(self) -> View:
        """The answers after the last journalled step."""
        return self._current.view

    def told(self, view: View) -> View:
        """The engine's view between two steps, which says how far sources are; in the shard's own thread."""
        return self._current.told(view)

    def lagging(self, name: str) -> frozenset[int]:
        """Partitions of a stream with unread records, as of the last poll."""
        return self._parts.streams.lagging.get(SourceName(name), frozenset())

    def waiting(self, query_id: str | None = None) -> int:
        """How many changes of a query, or of all, are still to be written to result topics."""
        return self._parts.steps.pending.untold(query_id)

    @property
    def broken(self) -> Mapping[str, ChangesBroken | InternalError]:
        """Queries that went since their changes cannot be told, and why."""
        return self._parts.emission.broken

    @property
    def stream_errors(self) -> Mapping[SourceName, dict[str, Any]]:
        """Streams that read no more, and why."""
        return self._parts.streams.errors

    def streams(self) -> dict[str, tuple[Stream, str]]:
        """Streams and their statements; once recovered, before commands are submitted."""
        statements = {info.name: info.sql for info in self.view().sources()}
        sources = self._parts.state.sources
        return {name: (one, statements[name]) for name, one in sources.items() if isinstance(one, Stream)}

    def derived(self) -> list[Derived]:
        """Views; as :meth:`streams`."""
        return [one for one in self._parts.state.sources.values() if isinstance(one, Derived)]

    def summaries(self) -> Mapping[SummaryName, NamedSummary]:
        """Summaries and their statements; as :meth:`streams`."""
        return self._parts.state.summaries

    # --- what others want -------------------------------------------------------------------------

    def submit(self, commands: Sequence[ShardCommand]) -> Future[list[Outcome]]:
        """Carry out in order; the future has one outcome each, once they are journalled."""
        return self._parts.inbox.submit(commands)

    def ask(self, work: Callable[[Engine], Found]) -> Future[Found]:
        """What ``work`` finds in the engine between two steps, in the shard's own thread."""
        return self._parts.inbox.ask(work)

    def bring_back(self, query_id: str, engine: Engine) -> bool:
        """Have a query that is swapped out stand again, and show it; in the shard's own thread. Returns
        whether it was swapped out. Raises the refusal of its text.
        """
        came = self.upkeep.swapper.back(engine, query_id)
        if came:
            self._current.show()
        return came

    def swapped(self) -> list[AdmittedQuery]:
        """The queries that are swapped out; as :meth:`streams`, and told once."""
        found, self._parts.state.swapped = self._parts.state.swapped, []
        return found

    # --- attributes -------------------------------------------------------------------------------

    def attributes(self) -> tuple[Attribute, ...]:
        """What the shard tells of itself besides its engine; from any thread."""
        return (
            Attribute("state", self.state, "whether it makes progress"),
            Attribute("steps", self.counts.steps, "steps that it made"),
            Attribute("transactions", self.counts.transactions, "transactions that they were written in"),
            *work_attributes(self.ingestion.grants),
        )

    def edit(self, values: Mapping[str, AttributeValue], version: int | None) -> None:
        """Set attributes, all or none; in the shard's own thread. Raises AttributeRefused, EditConflict."""
        for value in edits(f"{self.number}/{MODULE}", self.attributes(), values, version).values():
            limit_work(self.ingestion.grants, value, time.perf_counter_ns())
