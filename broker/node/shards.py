"""The shards of a node: started when they get something to do, given commands, asked, stopped.

Used on the event loop, but for iteration; a shard is a thread of its own and is reached by futures, which are
awaited here, so that nobody else has to know.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import wait

from broker.base.internal import Outcome
from broker.base.placement import shard_of
from broker.runtime import lives
from broker.runtime.liveness import Liveness, Pulse
from broker.shard.held import reason
from broker.shard.inbox import COMMANDS_AT_ONCE
from broker.shard.questions import Found
from broker.shard.setup import ShardSetup
from broker.shard.shard import Shard
from broker.shard.shard_command import ShardCommand
from broker.shard.stalls import Stall
from engine.engine import Engine
from engine.model.interruption import may_go_on
from tureen.errors import BrokerUnavailable, ShardHeld, TureenError

LOOK_S = 0.05
"""How soon a thread that waits for a shard sees that nobody waits for it any more."""


class Shards:
    """``shards[number]`` is one that was started; iteration goes over those that were, in any thread."""

    def __init__(self, setup: ShardSetup, liveness: Liveness) -> None:
        """liveness: where the shards give their signs of life. How the worker's last lives ended is read."""
        self._setup = setup
        self._settings = setup.settings
        self._liveness = liveness
        ends = lives.read(setup.settings.data_dir)
        self._causes = lives.repeated(ends, time.time(), setup.memory.budget.budget_bytes)
        """Those of the last ends, again and again; they hold shards that were there before."""
        self._at = {one.cause: one.at for one in ends}
        """By cause, what hung last."""
        self._by_number: dict[int, Shard] = {}

    def __getitem__(self, number: int) -> Shard:
        return self._by_number[number]

    def find(self, number: int) -> Shard | None:
        """A shard, where it was started."""
        return self._by_number.get(number)

    def __iter__(self) -> Iterator[Shard]:
        return iter(list(self._by_number.values()))

    def start(self, numbers: Iterable[int]) -> None:
        """Bring these back from their stores and journals, side by side; nothing is waited for."""
        for number in sorted(set(numbers)):
            self._start(number, reason(number, self._causes, self._at.get(f"shard-{number}", "")))

    def failure_of(self, source: str) -> Stall | None:
        """Why the shard that is a source's home has failed; None where it has not."""
        shard = self._by_number.get(shard_of([source], self._settings.shards))
        return shard.stall if shard is not None and shard.state == "failed" else None

    async def hand_over(self, number: int, commands: list[ShardCommand]) -> list[Outcome]:
        """Have a shard carry out commands, in order; one outcome each."""
        shard = self._by_number.get(number)
        if shard is None:
            shard = self._start(number)
        if not shard.recovered.done():  # those who wait go on in the order in which they came
            await asyncio.wrap_future(shard.recovered)
        parts = range(0, len(commands), COMMANDS_AT_ONCE) or (0,)
        futures = [shard.submit(commands[first : first + COMMANDS_AT_ONCE]) for first in parts]
        outcomes = await asyncio.gather(*map(asyncio.wrap_future, futures))
        return [outcome for part in outcomes for outcome in part]

    async def ask(self, number: int, work: Callable[[Engine], Found], wait_ms: int | None = None) -> Found:
        """What ``work`` finds in a shard's engine between two steps. wait_ms: how long it may take; None: as
        long as the outcome of a write. Raises its errors, BrokerUnavailable.
        """
        future = asyncio.wrap_future(self._by_number[number].ask(work))
        try:
            return await asyncio.wait_for(future, (wait_ms or self._settings.outcome_wait_ms) / 1_000)
        except TimeoutError:
            raise _late(number) from None

    def asker(self, number: int, wait_ms: int | None = None) -> Callable[[Callable[[Engine], Found]], Found]:
        """Asks a shard as :meth:`ask` does, from another thread, which waits; work that is called off gives
        up.
        """
        shard, allowed_s = self._by_number[number], (wait_ms or self._settings.outcome_wait_ms) / 1_000

        def ask(work: Callable[[Engine], Found]) -> Found:
            future, end_s = shard.ask(work), time.monotonic() + allowed_s
            while not wait([future], LOOK_S).done:
                try:
                    may_go_on()
                    if time.monotonic() > end_s:
                        raise _late(number)
                except TureenError:
                    future.cancel()
                    raise
            return future.result()

        return ask

    async def prove(self) -> None:
        """Have every shard journal a step that changes nothing, so that a fenced one finds out."""
        await asyncio.gather(*(self.hand_over(shard.number, [ShardCommand.prove()]) for shard in self))

    async def stop(self, timeout_s: float) -> bool:
        """Flush and end every shard; False when one still waits for Kafka: it has nothing to lose."""
        for shard in self:
            shard.stop()
        deadline_s = time.monotonic() + timeout_s
        for shard in self:
            await asyncio.to_thread(shard.join, max(0.0, deadline_s - time.monotonic()))
        self._setup.reading.close()
        return not any(shard.is_alive() for shard in self)

    async def retry(self) -> list[int]:
        """Have those that are held try to come back, whatever ended the worker before; their numbers."""
        await asyncio.to_thread(lives.forget, self._settings.data_dir, self._causes)
        held = [shard for shard in self if shard.held is not None]
        for shard in held:
            shard.retry()
        return sorted(shard.number for shard in held)

    def _start(self, number: int, held: ShardHeld | None = None) -> Shard:
        shard = self._by_number[number] = Shard(
            number,
            self._setup,
            Pulse(self._liveness, number + 1, self._settings.liveness_timeout_ms / 1_000),
            held,
        )
        shard.start()
        return shard


def _late(number: int) -> BrokerUnavailable:
    return BrokerUnavailable(
        f"shard {number} has not answered in time", hint="/readycheck shows what it waits for"
    )
