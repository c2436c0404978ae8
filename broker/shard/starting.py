"""A shard starts: its parts begin with what came back from its store and its journal.

    comeback (store, claim, replay; or held) -> saving, steps, state, emission, streams -> shown -> removals

What was removed while the shard was held becomes steps here, before anything else does. Queries of which
changes were lost go by steps once the shard is live.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from broker.base import logs
from broker.shard.comeback import Comeback
from broker.shard.current_view import CurrentView
from broker.shard.held import Removals
from broker.shard.outbox import Outgoing
from broker.shard.parts import ShardParts
from broker.shard.recovery import Recovered
from broker.shard.setup import ShardSetup
from broker.shard.shard_command import ShardCommand
from broker.shard.shard_state import ShardState
from engine.engine import Engine
from engine.model.source import Stream
from storage.store import Store
from tureen.errors import ShardHeld, TureenError

log = logs.get()


class Starting:
    """Used by the shard's thread; ``held``, ``recovered``, ``life`` and ``lost_history`` may be read by any,
    :meth:`retry` called.
    """

    def __init__(
        self, parts: ShardParts, setup: ShardSetup, held: ShardHeld | None, current: CurrentView
    ) -> None:
        """held: why the shard does not come back by itself. current: is shown what came back."""
        self.recovered: Future[None] = Future()
        """Done once it is known what stands, whether or not the shard is held."""
        self.life = ""
        """What tells its journal from others, as change positions have it; once recovered."""
        self.lost_history: Mapping[str, dict[str, Any]] = {}
        """Streams that came back without rows which the archive had given them, and why."""
        self._lost_output: Mapping[str, TureenError] = {}
        self._parts = parts
        self._current = current
        self._comeback = Comeback(parts.context, setup, held, parts.trials, parts.inbox, self._hold)
        self._store: Store | None = None

    @property
    def held(self) -> ShardHeld | None:
        """Why it does not come back by itself, while that is so."""
        return self._comeback.held

    @property
    def removals(self) -> Removals:
        """What was removed while it was held, until the store has no word of it; once it has come back."""
        return self._comeback.removals

    def retry(self) -> None:
        """Where it is held: try to come back."""
        self._comeback.retry()

    def come_back(self) -> None:
        """Have the parts begin with what came back, and show it. Raises Interrupted, Fenced, OSError, and as
        :func:`broker.shard.recovery.recover`.
        """
        self._parts.context.pulse.toil()
        self._store, claimed = self._comeback.open(self._parts.outbox)
        self.life, back = self._comeback.recovered(self._store, claimed)
        self._begin(self._store, claimed.epoch, back)
        self._current.show()
        self._remove_at_last()
        self._comeback.over()

    def known(self) -> None:
        """It is known what stands, or that nothing will be."""
        if not self.recovered.done():
            self.recovered.set_result(None)

    def give_up_lost_output(self) -> None:
        """Let queries go whose changes of replayed steps cannot be made again. Raises Fenced, Interrupted."""
        if self._lost_output:
            outgoing = Outgoing()
            self._parts.steps.give_up(self._lost_output, outgoing)
            self._parts.steps.commit(outgoing)
            self._current.show()

    def close(self) -> None:
        """The shard has ended: nothing more is stored."""
        if self._store is not None:
            self._store.close()

    def _begin(self, store: Store, epoch: int, back: Recovered) -> None:
        parts = self._parts
        self.lost_history, self._lost_output = back.lost_history, back.lost_output
        for name, sequence in back.history.items():
            parts.ingestion.history.put(name, sequence)
        parts.saving.begin(store, replayed=bool(back.replayed))
        parts.steps.begin(back.engine, epoch, back.pending)
        view = back.engine.view()
        parts.state.begin(view, back.engine)
        parts.emission.came(view, ((one.query_id, one.registration.sql) for one in view.standing.values()))
        sources = [(parts.state.sources[info.name], info.next_offsets) for info in view.sources()]
        streams = [(one, offsets) for one, offsets in sources if isinstance(one, Stream)]
        parts.streams.add(streams, parts.steps.now_ms())
        parts.preparations.apart.set_apart(parts.steps)

    def _hold(self, engine: Engine) -> ShardState:
        """It is held, with what stands in this engine."""
        self._current.view = engine.view()
        self._parts.state.begin(self._current.view, engine)
        self.known()
        return self._parts.state

    def _remove_at_last(self) -> None:
        """Make steps of what was removed while the shard was held; the engine came back without."""
        parts, removals = self._parts, self._comeback.removals
        if not removals:
            return
        parts.state.queries |= dict.fromkeys(removals.queries, ("", {}))
        commands = [ShardCommand.unregister(name) for name in sorted(removals.queries)]
        commands += [ShardCommand.drop(name) for name in removals.sources]
        outgoing = Outgoing()
        outcomes = parts.execution.carry_out(commands, outgoing)
        parts.steps.commit(outgoing)
        self._current.show()
        removals.made_at = parts.steps.engine.position
        refused = [outcome["error"] for outcome in outcomes if outcome["state"] == "ERROR"]
        log.info("removals_made", shard=parts.context.number, removed=len(commands), refused=refused)
