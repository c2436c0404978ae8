"""Registrations, alterations, pauses and removals that are worked out before their step, and registrations
that may end the worker.

What a query needs of the rows that are there, or what is told of it when it goes, may take seconds
(:mod:`engine.preparing`). Its registration then waits, PENDING ``being_prepared``, while a slice is made
between two steps, or what can be made beside is made in a thread; the control process says it again until it
stands. Unregistering the query, or giving it another text, gives it up at once: nothing of it was journalled.

A removal that waits so, PENDING ``being_removed``, is carried out by the shard itself (:meth:`removals`),
before other commands; a registration of the same query waits behind it. Where the worker ends in between, the
control process has the next one remove what it does not know.

Slices are made for one after the other, and some threads work at the same time. What takes them too long is
refused; a removal then takes no answer back. Each registration that was prepared comes in a step of its own,
as many of a batch as :data:`PREPARED_S` has time for.

Before a registration that may be dear is carried out it is noted (:mod:`broker.shard.trials`). One that was
at work when a worker died is carried out alone. Used by the shard's thread alone; ``progress``, ``prepared``
and ``removal`` may be read by others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from broker.base import logs
from broker.base.internal import Outcome
from broker.base.settings import Settings
from broker.runtime.liveness import Pulse
from broker.shard.apart import QueriesApart
from broker.shard.beside import Beside, Run
from broker.shard.doing import preparing
from broker.shard.shard_command import ShardCommand, registration_of
from broker.shard.shard_state import ShardState
from broker.shard.trials import Trials
from engine.engine import Engine
from engine.language.templates import Template
from engine.preparing import Preparation
from tureen.errors import BeingPrepared, BeingRemoved, TureenError

log = logs.get()

PREPARED_S = 0.1
"""So long registrations of one batch that were prepared come; the others come when they are said again."""


@dataclass(slots=True)
class _Waiting:
    """What a command said, and what is made for it. run: makes what can be made beside. refusal: why the
    command is not carried out. over: of a removal, done once the query has gone.
    """

    command: ShardCommand
    made: Preparation
    run: Run | None = None
    refusal: TureenError | None = None
    over: Future[None] = field(default_factory=Future)

    @property
    def is_removal(self) -> bool:
        return self.command.kind == "unregister"

    @property
    def is_at_work(self) -> bool:
        """Whether a thread makes something for it."""
        return self.run is not None and self.refusal is None and not self.made.is_done

    def is_for(self, command: ShardCommand) -> bool:
        """Whether the same is said again."""
        mine = self.command
        return (mine.kind, mine.said, mine.options) == (command.kind, command.said, command.options)

    def outcome(self, progress: float) -> Outcome:
        """What becomes of the command meanwhile."""
        if self.refusal is not None:
            return {"state": "ERROR", "error": self.refusal.as_dict(), "position": None}
        error = BeingRemoved() if self.is_removal else BeingPrepared(progress)
        return {"state": "PENDING", "error": error.as_dict(), "position": None}


class Preparations:
    """Prepares commands of one shard beside its steps, and notes registrations that may end the worker."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        trials: Trials,
        shard_state: ShardState,
        pulse: Pulse,
        wake: Callable[[], None],
    ) -> None:
        """pulse: the thread's signs of life. wake: it is to look at what is made."""
        self._number = number
        self._beside = Beside(number, settings, wake)
        self.apart = QueriesApart(self._beside)
        """Queries that were set apart when the shard came back."""
        self._pulse = pulse
        self._state = shard_state
        self._trials = trials
        self._waiting: dict[str, _Waiting] = {}
        """By query id, in the order in which they came."""
        self._unfinished: dict[str, _Waiting] = {}
        """Those of them that are neither prepared nor refused, in the same order."""
        self._with_run: dict[str, _Waiting] = {}
        """Those of the unfinished that a thread was begun for: no more than threads work, and those over."""
        self._gone: list[Future[None]] = []
        """What waits for removals that were carried out and are not journalled yet."""
        self.progress: Mapping[str, float] = {}
        """By id of a query that is prepared: what share is made. Never changed in place."""
        self.prepared: frozenset[str] = frozenset()
        """Queries whose command can be carried out: a registration once it is said again."""

    def knows(self, name: str) -> bool:
        """Whether a query is prepared, or a worker died over it."""
        return name in self._waiting or self._trials.knows(name)

    def removal(self, name: str) -> Future[None] | None:
        """Done once a query has gone, or the shard ends; None: it is not being removed. From any thread."""
        waiting = self._waiting.get(name)
        return waiting.over if waiting is not None and waiting.is_removal else None

    # --- commands ---------------------------------------------------------------------------------

    def awaited(self, engine: Engine, commands: Sequence[ShardCommand]) -> dict[int, Outcome]:
        """Find the commands that are not carried out now: by their places, what becomes of them."""
        outcomes: dict[int, Outcome] = {}
        asked: dict[int, ShardCommand] = {}
        named = Counter(one.name for one in commands if one.kind in ("register", "unregister"))
        leaving: dict[str, list[int]] = {}
        for place, command in enumerate(commands):
            if command.name in leaving:
                leaving[command.name].append(place)
            elif command.kind == "unregister":
                asked = {at: one for at, one in asked.items() if one.name != command.name}
                if self._ends_alone(command, named) and not self._is_prepared(command):
                    asked[place] = command
                    if self.apart.is_apart(command.name):
                        leaving[command.name] = []
            elif command.kind == "register" and self.removal(command.name) is not None:
                asked[place] = command
            elif self._comes(command):
                refusal = self._trials.refusal(command)
                if refusal is not None:
                    outcomes[place] = {"state": "ERROR", "error": refusal.as_dict(), "position": None}
                elif not self._is_prepared(command):
                    asked[place] = command
        for group in self.groups([one for one in asked.values() if one.name not in self._waiting]):
            self._prepare(engine, group)
        for place, one in asked.items():
            waiting = self._waiting.get(one.name)
            if waiting is not None:
                outcomes[place] = waiting.outcome(self.progress.get(one.name, 0.0))
                for behind in leaving.get(one.name, ()):
                    outcomes[behind] = waiting.outcome(0.0)
                if waiting.refusal is not None:
                    self.give_up(one.name)
        return outcomes

    def _ends_alone(self, command: ShardCommand, named: Mapping[str, int]) -> bool:
        """Whether a removal may wait: the query stands, and no other command is of it, or it is set apart.
        What was made for another command of the query goes.
        """
        waiting = self._waiting.get(command.name)
        if waiting is None or not waiting.is_removal:
            self.give_up(command.name)
        alone = named[command.name] == 1 or self.apart.is_apart(command.name)
        return command.name in self._state.queries and alone

    def _prepare(self, engine: Engine, commands: Sequence[ShardCommand]) -> None:
        """Find out which of some commands are dear; conditions of registrations are tried on some rows."""
        coming = [one for one in commands if one.kind == "register"]
        names = [one.name for one in coming]
        self._trials.begin(coming)
        self._pulse.beat(preparing([one.name for one in commands]))
        made = engine.preparing.of([registration_of(one) for one in coming])
        made |= engine.preparing.of_removals([one.name for one in commands if one.kind == "unregister"])
        self._trials.rest(names)
        for one in commands:
            if one.name in made:
                self._waiting[one.name] = self._unfinished[one.name] = _Waiting(one, made[one.name])
                event = "registration_prepared" if one.kind == "register" else "removal_prepared"
                log.info(event, shard=self._number, query=one.name)
        self._tell(*made)

    def _comes(self, command: ShardCommand) -> bool:
        """Whether a command registers what does not stand so, and may be dear."""
        standing = self._state.queries.get(command.name)
        if command.kind != "register" or standing == command.standing:
            return False
        return standing is not None or may_be_dear(command)

    def _died_over(self, command: ShardCommand) -> bool:
        return self._trials.ends_of(command) > 0

    def groups(self, commands: Sequence[ShardCommand]) -> list[list[ShardCommand]]:
        """Commands in order, each alone where a worker died over it, or it was prepared, so that its first
        answer takes time.
        """
        groups: list[list[ShardCommand]] = [[]]
        for command in commands:
            if self._comes(command) and (command.name in self.prepared or self._died_over(command)):
                groups += [[command], []]
            else:
                groups[-1].append(command)
        return [group for group in groups if group]

    def put_off(self, commands: Sequence[ShardCommand], spent_s: float) -> list[Outcome]:
        """What becomes of a group that was prepared and comes with the commands that follow, since others
        have taken their time of these; empty: it comes now. spent_s: how long they took.
        """
        waiting = [self._waiting[one.name] for one in commands if one.name in self.prepared]
        if spent_s < PREPARED_S or not waiting:
            return []
        return [one.outcome(one.made.progress) for one in waiting]

    def begin(self, commands: Sequence[ShardCommand]) -> None:
        """Note that these commands are carried out now."""
        self._trials.begin(one for one in commands if self._comes(one))

    def done(self, commands: Sequence[ShardCommand]) -> None:
        """Note that these commands were carried out."""
        known = [one.name for one in commands if one.kind in ("register", "unregister")]
        for name in known:
            self._dismiss(name)
        self._trials.over(known)

    def removals(self) -> list[ShardCommand]:
        """The removal that is to be carried out now, before other commands: its answer is made."""
        for name, waiting in self._waiting.items():
            if waiting.is_removal and name in self.prepared:
                return [waiting.command]
        return []

    def journalled(self) -> None:
        """What was carried out is journalled."""
        for over in self._gone:
            over.set_result(None)
        self._gone = []

    def _is_prepared(self, command: ShardCommand) -> bool:
        """Whether what a command needs is made. What was made for another one goes."""
        waiting = self._waiting.get(command.name)
        if waiting is None:
            return False
        if not waiting.is_for(command) or not waiting.made.is_current:
            self.give_up(command.name)
            return False
        return command.name in self.prepared

    def give_up(self, name: str) -> None:
        """A query does not come, or comes in another way."""
        if self.knows(name):
            self._dismiss(name)
            self._trials.over([name])

    def _dismiss(self, name: str) -> None:
        waiting = self._waiting.pop(name, None)
        self._finish(name)
        if waiting is not None:
            waiting.made.dismiss()
            if waiting.run is not None:
                self._beside.give_up(waiting.run)
            self._gone.append(waiting.over)
            self._tell(name)

    def _finish(self, name: str) -> None:
        """Nothing more is made for a query."""
        self._unfinished.pop(name, None)
        self._with_run.pop(name, None)

    # --- slices -----------------------------------------------------------------------------------

    def some(self, has_room: bool) -> bool:
        """Make a slice of what is to be made first. has_room: for queries that come; who goes needs none.
        Returns whether there was any.
        """
        self._refuse_late()
        waiting = self._next(has_room)
        if waiting is None:
            return any(self._waiting[name].made.some() for name in self.prepared)
        command = waiting.command
        if not waiting.is_removal and not self._trials.is_at_work(command):
            self._trials.begin([command])
        self._pulse.beat(preparing([command.name]))
        did = waiting.made.some()
        if waiting.made.is_done and not did:
            self.prepared |= {command.name}
            self._finish(command.name)
            self._trials.rest([command.name])
            did = waiting.is_removal  # it is carried out at once
        elif not did and waiting.run is None:
            waiting.run = self._beside.begin(waiting.made.run)
            self._with_run[command.name] = waiting
        self._tell(command.name)
        return did or self._next(has_room) is not None

    def _next(self, has_room: bool) -> _Waiting | None:
        """For whom a slice is made, or a thread begins. Nothing else is done while something over which a
        worker died is at work. Cost: O(queries with a thread), and those of the unfinished before it.
        """
        at_work = [one for one in self._with_run.values() if one.is_at_work]
        alone = any(self._died_over(one.command) for one in at_work)
        for one in self._unfinished.values():
            if one.is_at_work or (one.made.comes and not has_room) or one.made.is_blocked:
                continue
            if one.run is not None:  # its thread is over
                return one
            if alone or (at_work and self._died_over(one.command)):
                continue
            if not one.made.is_made or self._beside.has_room:
                return one
        return None

    def _refuse_late(self) -> None:
        """What threads have worked at for too long is refused; nobody waits for these threads any more."""
        for name, one in list(self._with_run.items()):
            if one.is_at_work and one.run is not None and self._beside.is_late(one.run):
                refusal = self._beside.refusal(name)
                one.made.refuse(refusal)
                self._beside.give_up(one.run)
                self._trials.rest([name])
                if not one.is_removal:
                    one.refusal = refusal
                    self._finish(name)
        self._beside.break_off()

    def _tell(self, *names: str) -> None:
        """names: of what has made progress, or waits no more."""
        self.prepared = self.prepared.intersection(self._waiting)
        progress = dict(self.progress)
        for name in names:
            waiting = self._waiting.get(name)
            if waiting is None:
                progress.pop(name, None)
            elif not waiting.is_removal:
                progress[name] = waiting.made.progress
        self.progress = progress

    def stop(self) -> None:
        """The worker stops as asked."""
        self._trials.stop()

    def end(self) -> None:
        """The shard makes no more steps: nobody waits for removals any more."""
        for over in [*self._gone, *(one.over for one in self._waiting.values())]:
            over.cancel()
        self._gone = []


def may_be_dear(command: ShardCommand) -> bool:
    """Whether more may have to be done for a registration than to look up constants. O(1)."""
    read = None if command.bound is None else command.bound.read
    if read is None or read.template is None:
        return True
    plain = isinstance(read.template, Template) and read.template.selection is not None
    return read.template.emits or not plain
