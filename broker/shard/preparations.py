"""Registrations that are worked out in slices before their step, and those that may end the worker.

What a query needs of the rows that are there may take seconds (:mod:`engine.preparing`). Its
registration then waits, PENDING ``being_prepared``, while a slice is made between two steps; the control
process says it again until it stands. One is prepared after the other. Unregistering the query, or giving it
another text, gives it up at once: nothing of it was journalled.

Before a registration that may be dear is carried out it is noted (:mod:`broker.shard.trials`). One that was
at work when a worker died is carried out alone. Used by the shard's thread alone; ``progress`` and
``prepared`` may be read by others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker.base import logs
from broker.base.internal import Outcome
from broker.runtime.liveness import Pulse
from broker.shard.books import Books
from broker.shard.doing import preparing
from broker.shard.shard_command import ShardCommand, registration_of
from broker.shard.trials import Trials
from engine.engine import Engine
from engine.language.templates import Template
from engine.preparing import Preparation
from engine.queries.nursery import Nursery
from tureen.errors import BeingPrepared

log = logs.get()


@dataclass(slots=True)
class _Waiting:
    """What a registration said, and what is made for it. runs: a thread makes what can be made beside."""

    command: ShardCommand
    made: Preparation
    runs: bool = False

    def is_for(self, command: ShardCommand) -> bool:
        """Whether the same is registered again."""
        return self.command.said == command.said and self.command.options == command.options


class Preparations:
    """Prepares registrations of one shard in slices, and notes those that may end the worker."""

    def __init__(
        self, number: int, trials: Trials, books: Books, pulse: Pulse, wake: Callable[[], None]
    ) -> None:
        """pulse: the thread's signs of life. wake: it is to look at what is made."""
        self._wake = wake
        self._number = number
        self._pulse = pulse
        self._books = books
        self._trials = trials
        self._waiting: dict[str, _Waiting] = {}
        """By query id, in the order in which they came."""
        self._coming: str | None = None
        """The one query, of those that are prepared, that comes with the commands at hand."""
        self.progress: Mapping[str, float] = {}
        """By id of a query that is prepared: what share is made. Never changed in place."""
        self.prepared: frozenset[str] = frozenset()
        """Queries whose registration can be carried out, once it is said again."""

    def knows(self, name: str) -> bool:
        """Whether a query is prepared, or a worker died over it."""
        return name in self._waiting or self._trials.knows(name)

    # --- commands ---------------------------------------------------------------------------------

    def awaited(self, engine: Engine, commands: Sequence[ShardCommand]) -> dict[int, Outcome]:
        """Find the commands that are not carried out now: by their places, what becomes of them."""
        self._coming = None
        outcomes: dict[int, Outcome] = {}
        asked: dict[int, ShardCommand] = {}
        for place, command in enumerate(commands):
            if command.kind == "unregister":
                self.give_up(command.name)
                asked = {at: one for at, one in asked.items() if one.name != command.name}
            elif self._comes(command):
                refusal = self._trials.refusal(command)
                if refusal is not None:
                    outcomes[place] = {"state": "ERROR", "error": refusal.as_dict(), "position": None}
                elif not self._is_prepared(command):
                    asked[place] = command
        for group in self.groups([one for one in asked.values() if one.name not in self._waiting]):
            self._prepare(engine, group)
        for place, one in asked.items():
            if one.name in self._waiting:
                error = BeingPrepared(self.progress.get(one.name, 0.0))
                outcomes[place] = {"state": "PENDING", "error": error.as_dict(), "position": None}
        return outcomes

    def _prepare(self, engine: Engine, commands: Sequence[ShardCommand]) -> None:
        """Find out which of some registrations are dear, for which conditions are tried on some rows."""
        names = [one.name for one in commands]
        self._trials.begin(commands)
        self._pulse.beat(preparing(names))
        made = engine.preparations([registration_of(one) for one in commands])
        self._trials.rest(names)
        for one in commands:
            if one.name in made:
                self._waiting[one.name] = _Waiting(one, made[one.name])
                log.info("registration_prepared", shard=self._number, query=one.name)
        self._tell()

    def _comes(self, command: ShardCommand) -> bool:
        """Whether a command registers what does not stand so, and may be dear."""
        if command.kind != "register" or self._books.queries.get(command.name) == command.standing:
            return False
        return may_be_dear(command)

    def _died_over(self, command: ShardCommand) -> bool:
        return self._trials.ends_of(command) > 0

    def groups(self, commands: Sequence[ShardCommand]) -> list[list[ShardCommand]]:
        """Commands in order, those over which a worker died each alone."""
        groups: list[list[ShardCommand]] = [[]]
        for command in commands:
            if self._comes(command) and self._died_over(command):
                groups += [[command], []]
            else:
                groups[-1].append(command)
        return [group for group in groups if group]

    def begin(self, commands: Sequence[ShardCommand]) -> None:
        """Note that these commands are carried out now."""
        self._trials.begin(one for one in commands if self._comes(one))

    def done(self, commands: Sequence[ShardCommand]) -> None:
        """Note that these commands were carried out."""
        for one in commands:
            if one.kind == "register":
                self._dismiss(one.name)
        self._trials.over(one.name for one in commands if one.kind in ("register", "unregister"))

    def _is_prepared(self, command: ShardCommand) -> bool:
        """Whether what a registration needs is made. What was made for another one goes."""
        waiting = self._waiting.get(command.name)
        if waiting is None:
            return False
        if not waiting.is_for(command) or not waiting.made.is_current:
            self.give_up(command.name)
            return False
        return command.name in self.prepared and self._has_its_turn(command.name)

    def _has_its_turn(self, name: str) -> bool:
        """Whether no other that is prepared comes with the same commands: their first answers take time."""
        if self._coming is None:
            self._coming = name
        return self._coming == name

    def give_up(self, name: str) -> None:
        """A query does not come, or comes in another way."""
        if self.knows(name):
            self._dismiss(name)
            self._trials.over([name])

    def _dismiss(self, name: str) -> None:
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            waiting.made.dismiss()
            self._tell()

    # --- slices -----------------------------------------------------------------------------------

    def some(self) -> bool:
        """Make a slice of what is to be made first. Returns whether there was any."""
        for name, waiting in self._waiting.items():
            if name in self.prepared:
                continue
            if not self._trials.is_at_work(waiting.command):
                self._trials.begin([waiting.command])
            self._pulse.beat(preparing([name]))
            did = waiting.made.some()
            if waiting.made.is_done and not did:
                self.prepared |= {name}
                self._trials.rest([name])
            elif not did and not waiting.runs:
                self._run_beside(waiting)
            self._tell()
            return did
        return any(self._waiting[name].made.some() for name in self.prepared)

    def _run_beside(self, waiting: _Waiting) -> None:
        """Have a thread make what can be made beside."""
        assert waiting.made.beside is not None
        waiting.runs = True
        thread = threading.Thread(
            target=self._beside, args=[waiting.made.beside], name=f"shard-{self._number}-beside", daemon=True
        )
        thread.start()

    def _beside(self, nursery: Nursery) -> None:
        try:
            nursery.run()
        except Exception as failed:  # it is made in the step then
            log.error("preparation_failed", shard=self._number, error=repr(failed), exc_info=failed)
        finally:
            self._wake()

    def _tell(self) -> None:
        self.prepared = self.prepared.intersection(self._waiting)
        self.progress = {name: waiting.made.progress for name, waiting in self._waiting.items()}

    def stop(self) -> None:
        """The worker stops as asked."""
        self._trials.stop()


def may_be_dear(command: ShardCommand) -> bool:
    """Whether more may have to be done for a registration than to look up constants. O(1)."""
    read = None if command.bound is None else command.bound.read
    if read is None or read.meaning is None:
        return True
    plain = isinstance(read.meaning, Template) and read.meaning.selection is not None
    return read.meaning.emits or not plain
