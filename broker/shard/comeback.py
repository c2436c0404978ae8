"""How a shard comes back from its store and its journal, and how it is held where it may not.

Kafka and the disk are waited for. A shard is held that ended its worker again and again, or for which there
is too little memory (:mod:`broker.shard.held`): until something was removed, or an operator has it try again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from broker.base import logs
from broker.base.cursor import life_of
from broker.memory.held import trim
from broker.memory.levels import Level
from broker.runtime import lives
from broker.shard.context import ShardContext
from broker.shard.held import Removals, carried_out
from broker.shard.inbox import Inbox
from broker.shard.outbox import Outbox
from broker.shard.recovery import Recovered, recover, rowless
from broker.shard.setup import ShardSetup
from broker.shard.shard_command import ShardCommand
from broker.shard.shard_state import ShardState
from broker.shard.stalls import Interrupted
from broker.shard.trials import Trials
from engine.engine import Engine
from engine.model.step import BEGINNING, Position
from storage.store import Store
from tureen.errors import KafkaUnavailable, MemoryBudgetExceeded, RegistryUnavailable, ShardHeld, StoreFull

HELD_S = 1.0
"""A shard that is held tries to come back when nothing more was removed for so long."""

log = logs.get()


class Comeback:
    """Used by the shard's thread; ``held`` may be read by any, :meth:`retry` called."""

    def __init__(
        self,
        context: ShardContext,
        setup: ShardSetup,
        held: ShardHeld | None,
        trials: Trials,
        inbox: Inbox,
        known: Callable[[Engine], ShardState],
    ) -> None:
        """held: why the shard is not to come back by itself. known: told once, where it is held, what stands,
        in an engine without rows.
        """
        number = context.number
        self.held = held
        """Why it does not come back by itself, while that is so."""
        self.removals = Removals(setup.settings.data_dir / "shards" / f"{number}.removals.json")
        """What was removed while it was held, as noted before or now."""
        self._number = number
        self._setup = setup
        self._trials = trials
        self._stalls = context.stalls
        self._inbox = inbox
        self._pulse = context.pulse
        self._known = known
        self._shard_state: ShardState | None = None
        self._held_by: str | None = None
        self._retry = threading.Event()

    def retry(self) -> None:
        """Where it is held: try to come back. Any thread."""
        self._retry.set()
        self._inbox.wake()

    def open(self, outbox: Outbox) -> tuple[Store, Position]:
        """The store, and the claim by which other owners are fenced. Raises Interrupted, Fenced, OSError."""
        self.removals = Removals.read(self.removals.path)
        store = self._opened()
        claimed = outbox.take_over(store.position() or BEGINNING)
        self._pulse.toil()
        return store, claimed

    def over(self) -> None:
        """It is back: why it was held counts no more."""
        if self._held_by is not None:
            lives.forget(self._setup.settings.data_dir, [self._held_by])

    def recovered(self, store: Store, claimed: Position) -> tuple[str, Recovered]:
        """What tells its journal from others, and the engine as it was, once it may be brought back and Kafka
        is there. Raises Interrupted, and as :func:`broker.shard.recovery.recover`.
        """
        while True:
            if self.held is not None:
                self._hold(store, claimed, self.held)
            try:
                life = life_of(self._setup.admin.topic_id(self._setup.settings.names.steps))
                back = recover(self._number, store, claimed, self._setup, self._check, self.removals)
            except (KafkaUnavailable, RegistryUnavailable) as away:
                self._stalls.wait("journal", away)
            except MemoryBudgetExceeded as short:
                self.held = ShardHeld(self._number, "memory", short.message)
            else:
                self._stalls.tell("journal", None)
                return life, back

    def _opened(self) -> Store:
        while True:
            try:
                store = Store(self._setup.settings.data_dir / "shards" / str(self._number))
            except StoreFull as full:
                self._stalls.wait("store", full)
            else:
                self._stalls.tell("store", None)
                return store

    def _check(self) -> None:
        """Between two pieces of what comes back. Raises MemoryBudgetExceeded, Interrupted."""
        self._pulse.toil()
        if self._stalls.stopping:
            raise Interrupted
        memory = self._setup.memory
        if memory.look() < Level.SHED:
            return
        trim()  # what comes back piece by piece leaves much behind
        if memory.look(again=True) >= Level.SHED:
            raise memory.error("what it holds does not fit")

    def _hold(self, store: Store, claimed: Position, error: ShardHeld) -> None:
        """Know what stands, and wait until something was removed, or to try again. Raises Interrupted."""
        log.error("shard_held", shard=self._number, cause=error.cause, reason=error.message, hint=error.hint)
        self._setup.memory.accounts.counted(self._number, None)
        trim()
        engine = None if self._shard_state is not None else self._rowless(store, claimed)
        self._stalls.tell("held", error.as_dict())
        if engine is not None:
            self._shard_state = self._known(engine)
        assert self._shard_state is not None
        removed = False
        while not self._retry.is_set():
            self._pulse.rest(HELD_S)
            jobs = self._inbox.take(HELD_S)
            if self._stalls.stopping:
                raise Interrupted
            self._inbox.turn_away(error)
            if removed and not jobs:
                break
            before = len(self.removals)
            for job in jobs:
                job.outcomes = [
                    carried_out(one, self._shard_state, self.removals, error) for one in job.commands
                ]
                removed |= self._given_up(job.commands)
            if len(self.removals) > before:
                self.removals.note()
                removed = True
            self._inbox.done()
        self._retry.clear()
        self._pulse.toil()
        self.held, self._held_by = None, error.cause
        self._stalls.tell("held", None)
        log.info("shard_tries_again", shard=self._number, removed=len(self.removals))

    def _given_up(self, commands: Sequence[ShardCommand]) -> bool:
        """Whether one of some commands removes a registration over which workers died, and which came to
        nothing.
        """
        given_up = [one.name for one in commands if one.kind == "unregister" and self._trials.knows(one.name)]
        self._trials.over(given_up)
        return bool(given_up)

    def _rowless(self, store: Store, claimed: Position) -> Engine:
        """What stands, without a row of it."""
        while True:
            try:
                engine = rowless(
                    self._number,
                    store,
                    claimed,
                    self._setup.settings,
                    self._setup.kafka,
                    self._setup.engines,
                    self.removals,
                )
            except (KafkaUnavailable, RegistryUnavailable) as away:
                self._stalls.wait("journal", away)
            else:
                self._stalls.tell("journal", None)
                return engine
