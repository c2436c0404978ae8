"""Where memory grows short, queries that tolerate it are given less, before anybody is refused or paused.

Queries share a budget: what memory has left of its target, once all that no allocation changes is in it. Who
gets how much is solved over the queries of all shards together, by weight (:mod:`engine.overload.precision`);
what changes is a journalled step of the shard. Exact queries keep what they need.

    begins   above ``allocation_begin`` of the budget less is given, to come down to ``allocation_target``
    again    below ``allocation_end`` more is given, up to the target; or queries came, went or changed
    between  ``allocation_ms`` at least from one time to the next, so that memory comes back in between

Between end and begin nothing moves (hysteresis), and the solver starts from the last solution, which stays
where another gains little. What a solver that fails gives is the last allocation. Queries whose bounds cannot
be kept are served as well as can be, and told (``precision_unreachable``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from broker.base import logs
from broker.base.settings import Settings
from broker.memory.held import trim
from broker.memory.levels import Memory
from broker.node.node import Node
from broker.shard.shard_command import ShardCommand
from engine.engine import Engine
from engine.overload.precision.allocation import solve
from engine.overload.precision.problem import Allocation, EntityId, Problem
from engine.queries.allocating import EngineProblem
from engine.standing.query import StandingQuery
from tureen.errors import TureenError

log = logs.get()


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of the memory budget at which allocation begins, aims and ends: see the settings of these
    names.
    """

    begin: float
    target: float
    end: float

    def wanted(self, share: float, *, given_less: bool, changed: bool) -> bool:
        """Whether to allocate again, at a share of the budget in use. changed: queries came, went or changed
        since the last time.
        """
        return share >= self.begin or (given_less and (share < self.end or changed))

    def left_bytes(self, budget_bytes: int, used_bytes: int, now_bytes: float) -> float:
        """Bytes left for what queries may be given less of, which takes ``now_bytes`` now."""
        return max(0.0, now_bytes + self.target * budget_bytes - used_bytes)


class MemoryAllocation:
    """Used on the event loop."""

    def __init__(self, settings: Settings, node: Node, memory: Memory) -> None:
        self._shares = Shares(settings.allocation_begin, settings.allocation_target, settings.allocation_end)
        self._between_s = settings.allocation_ms / 1_000
        self._node = node
        self._memory = memory
        self._counts = node.allocation
        self._last: Allocation | None = None
        self._last_s = time.monotonic() - self._between_s
        self._gave_s = self._last_s
        self._seen: list[object] | None = None
        """What stood when it was solved last."""

    @property
    def is_settling(self) -> bool:
        """Whether less was given just now, so that memory has to come down yet."""
        return time.monotonic() - self._gave_s < self._between_s

    async def look(self) -> None:
        """Allocate, where it is time to. Raises BrokerUnavailable."""
        now_s = time.monotonic()
        if not self._node.life.started or now_s - self._last_s < self._between_s:
            return
        share = self._memory.used / self._memory.budget.budget_bytes
        seen = self._stands()
        first = self._seen is None
        given_less = bool(self._counts.given_less) or first
        changed = self._seen is not None and (
            len(seen) != len(self._seen)
            or any(one is not other for one, other in zip(seen, self._seen, strict=True))
        )
        if not self._shares.wanted(share, given_less=given_less, changed=changed):
            return
        self._last_s = now_s
        await self._allocate()
        self._seen = self._stands()

    def _stands(self) -> list[object]:
        """The queries of each shard; others as soon as one comes, goes or changes."""
        return [shard.view().standing for shard in self._node.shards if shard.state == "live"]

    async def _allocate(self) -> None:
        shards = [shard.number for shard in self._node.shards if shard.state == "live"]
        asked = {number: await self._node.shards.ask(number, Engine.allocation_problem) for number in shards}
        found = {number: one for number, one in asked.items() if one is not None}
        if not found:
            self._counts.given_less, self._counts.unreachable = 0, {}
            return
        now_bytes = sum(one.bytes_now for one in found.values())
        left = self._shares.left_bytes(self._memory.budget.budget_bytes, self._memory.used, now_bytes)
        began_s = time.perf_counter()
        try:
            allocation = await asyncio.to_thread(solve, together(found, left), self._last)
        except (TureenError, ValueError, ArithmeticError) as error:  # the last allocation stands
            self._counts.failed += 1
            log.warning("allocation_failed", error=repr(error))
            return
        self._counts.solve_s = time.perf_counter() - began_s
        self._counts.rounds += 1
        if not allocation.converged:
            self._counts.failed += 1
            log.warning("allocation_did_not_converge", bytes=round(allocation.bytes))
        self._last = allocation
        self._counts.unreachable = {
            name.partition("/")[2]: refusal for name, refusal in allocation.refusals().items()
        }
        changed = given_less = 0
        for number, problem in found.items():
            standing = self._node.shards[number].view().standing
            commands, less = commands_of(problem, of_shard(allocation, number), standing)
            given_less += less
            changed += len(commands)
            if commands:
                outcomes = await self._node.shards.hand_over(number, commands)
                self._counts.failed += sum(outcome["error"] is not None for outcome in outcomes)
        self._counts.given_less = given_less
        self._counts.steps += changed
        if changed:
            log.info(
                "memory_allocated",
                changed=changed,
                given_less=given_less,
                left_bytes=round(left),
                bytes_before=round(now_bytes),
                bytes_after=round(allocation.bytes),
                unreachable=len(self._counts.unreachable),
            )
            self._gave_s = time.monotonic()
            await asyncio.to_thread(trim)


def together(problems: Mapping[int, EngineProblem], budget_bytes: float) -> Problem:
    """The problems of several shards as one; entities and queries get the number of their shard before their
    names. O(queries).
    """
    entities, queries = [], []
    for number, one in problems.items():
        own = one.found.problem
        entities += [replace(entity, id=_named(number, entity.id)) for entity in own.entities]
        queries += [
            replace(
                query,
                id=f"{number}/{query.id}",
                entities=tuple(_named(number, name) for name in query.entities),
            )
            for query in own.queries
        ]
    return Problem(entities, queries, budget_bytes)


def of_shard(allocation: Allocation, number: int) -> Allocation:
    """What it says of one shard's entities and queries, by their own names."""
    mine = f"{number}/"
    return replace(
        allocation,
        x={EntityId(name.removeprefix(mine)): x for name, x in allocation.x.items() if name.startswith(mine)},
        expected={
            name.removeprefix(mine): outcome
            for name, outcome in allocation.expected.items()
            if name.startswith(mine)
        },
    )


def commands_of(
    problem: EngineProblem, allocation: Allocation, standing: Mapping[str, StandingQuery]
) -> tuple[list[ShardCommand], int]:
    """What makes queries be given what an allocation says, and how many are given less then."""
    commands: list[ShardCommand] = []
    less = 0
    for name, allotment in problem.allotments(allocation).items():
        query = standing.get(name)
        if query is None:
            continue
        less += bool(allotment)
        now = () if query.allotted is None else query.allotted.allotment.scans
        if now != (allotment.scans if allotment else ()):
            commands.append(ShardCommand.allocate(name, allotment))
    return commands, less


def _named(number: int, name: EntityId) -> EntityId:
    return EntityId(f"{number}/{name}")
