"""The steps of a shard: the engine makes them, and they go into a transaction with all that they tell.

One step is one transition of the engine. Its record for the journal and what emitting queries tell of it are
put into an :class:`broker.worker.outbox.Outgoing`, whose commit makes the steps so far final:

    body -> engine -> journal record, changes for result topics -> ... -> one transaction

Queries whose changes cannot be told go by steps of their own. The clock of steps never goes back.

The engine is this module's: others read it between steps. Used by the shard's thread alone; ``epoch`` may be
read by others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from broker import logs
from broker.liveness import Pulse
from broker.settings import Settings
from broker.worker.counts import Counts
from broker.worker.emission import Emission
from broker.worker.outbox import Letter, Outbox, Outgoing, Unwritable
from broker.worker.shard_command import unregister_bodies
from broker.worker.troubles import Troubles
from engine.engine import Engine
from engine.model.step import Body, Position, Register, Step, StepResult, Unregister
from topics.consumer import Range
from topics.journal import HistoryNamed, encode_step
from topics.outputs import AWAITED
from topics.sizes import RECORD_OVERHEAD_BYTES
from tureen.errors import TureenError

log = logs.get()


class Steps:
    """``engine``: after the last step. ``clock_ms``: of the last step."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        engine: Engine,
        emission: Emission,
        outbox: Outbox,
        troubles: Troubles,
        counts: Counts,
        gone: Callable[[Iterable[str]], None],
        pulse: Pulse,
    ) -> None:
        """gone: told of queries that a step let go, since their changes cannot be told. pulse: each step is
        a sign of life.
        """
        self.engine = engine
        self.epoch = 0
        self.clock_ms = 0
        self._number = number
        self._topic = settings.names.steps
        self.body_bytes_max = (settings.record_bytes_max - RECORD_OVERHEAD_BYTES) // 2
        """Of what a step registers or removes: what else its record has needs less."""
        self._emission = emission
        self._outbox = outbox
        self._troubles = troubles
        self._counts = counts
        self._gone = gone
        self._pulse = pulse

    def begin(self, engine: Engine, epoch: int) -> None:
        """Go on with a recovered engine; ``epoch`` tells the positions of this owner's steps from others'."""
        self.engine, self.epoch = engine, epoch
        self.clock_ms = self.now_ms()

    def now_ms(self) -> int:
        """What the clock of the next step says."""
        return max(self.clock_ms, time.time_ns() // 1_000_000)

    def next_offsets(self, source: str) -> dict[int, int]:
        """Where reading a source goes on."""
        return next(info.next_offsets for info in self.engine.view().sources() if info.name == source)

    def make(self, body: Body, outgoing: Outgoing, read: Sequence[Range] | HistoryNamed = ()) -> StepResult:
        """Apply a step and add what it writes. read: where its rows can be read again. Raises Interrupted."""
        self._pulse.beat()
        self.clock_ms = self.now_ms()
        last = self.engine.position
        step = Step(Position(self.epoch, last.sequence + 1), self.clock_ms, body)
        self.engine.enqueue(step)
        (result,) = self.engine.run()
        key, value = encode_step(step, result, read)
        outgoing.letters.append(Letter(self._topic, value, key, self._number))
        outgoing.last = step.position
        outgoing.results.append(result)
        if isinstance(body, Register):
            outgoing.touched.update(one.query_id for one in body.registrations)
        elif isinstance(body, Unregister):
            outgoing.touched.update(body.query_ids)
        self._counts.steps += 1
        self._emit(body, result, outgoing)
        return result

    def commit(self, outgoing: Outgoing) -> None:
        """Write it; what topics refuse is left out. Of results, the queries whose output it is go.

        Raises Fenced, Interrupted.
        """
        while True:
            try:
                self._outbox.commit(outgoing)
                break
            except Unwritable as refused:
                outgoing.records = [one for one in outgoing.records if one.topic not in refused.topics]
                self._pass_over(refused.topics, outgoing)
                self._let_go(self._emission.refused(refused.topics), outgoing)
        self._counts.transactions += 1

    def _pass_over(self, refused: Mapping[str, TureenError], outgoing: Outgoing) -> None:
        """Leave out letters that their topic refuses: the records are where they came from."""
        left = Counter(one.topic for one in outgoing.letters if one.topic in refused)
        outgoing.letters = [one for one in outgoing.letters if one.topic not in refused]
        for topic, count in left.items():
            self._counts.letters_lost[topic] += count
            self._counts.letters_refused[topic] = refused[topic].as_dict()
            log.error(
                "letters_lost", shard=self._number, topic=topic, records=count, reason=refused[topic].message
            )

    def _emit(self, body: Body, result: StepResult, outgoing: Outgoing) -> None:
        """Add what the queries that emit tell of a step; those that cannot go, by a step of their own."""
        self._emission.stepped(body, result, self.engine)
        while True:
            try:
                records, broken = self._emission.records(body, result)
                break
            except AWAITED as away:
                self._troubles.wait("output", away)
        self._troubles.tell("output", None)
        outgoing.records += records
        self._let_go(broken, outgoing)

    def _let_go(self, broken: tuple[str, ...], outgoing: Outgoing) -> None:
        if broken:
            log.error("changes_broken", shard=self._number, queries=sorted(broken))
            for part in unregister_bodies(broken, self.body_bytes_max):
                self.make(part, outgoing)
            self._gone(broken)
