"""A query is asked where it stands, which may be somewhere else a moment later.

One that is just being replaced is gone from its old shard before the new one is journalled; whoever asks then
waits a little rather than hear of a query that is not there. Sources that came to a shard with the query are
waited for too, so that its first answer has what was before it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from broker.http.described import is_swapped_out, standing
from broker.http.errors import QueryNotRunning
from broker.node.node import Node
from tureen.errors import BrokerUnavailable, UnknownQuery

Found = TypeVar("Found")

REPLACED_WAIT_S = 2.0


async def asked(
    node: Node, name: str, arrival_wait_s: float, find: Callable[[int], Awaitable[Found]]
) -> Found:
    """What ``find`` gives for the shard of a query, by its number; counted as one time it was asked for.

    Raises UnknownQuery, QueryNotRunning, BrokerUnavailable, ShardHeld, and what ``find`` raises but
    UnknownQuery.
    """
    deadline_s = time.monotonic() + REPLACED_WAIT_S
    while True:
        shard = shard_of(node, name)
        await _arrived(node, shard, arrival_wait_s)
        await brought_back(node, name)
        node.shards[shard].asked.count(name)
        try:
            return await find(shard)
        except UnknownQuery:
            if time.monotonic() > deadline_s:
                raise BrokerUnavailable("the query is being replaced", hint="try again in a second") from None
            await asyncio.sleep(0.01)


async def brought_back(node: Node, name: str) -> float | None:
    """Have a query that is swapped out stand again. Returns how many ms that took; None: it was not.

    Raises as :func:`shard_of`, and the refusal of its text.
    """
    shard = node.shards[shard_of(node, name)]
    if not is_swapped_out(shard, name):
        return None
    began_s = time.perf_counter()
    came = await node.shards.ask(shard.number, partial(shard.bring_back, name))
    return 1_000 * (time.perf_counter() - began_s) if came else None


def shard_of(node: Node, name: str) -> int:
    """Where a query stands. Raises UnknownQuery, QueryNotRunning, BrokerUnavailable, ShardHeld."""
    entry = standing(node, name)
    if entry.shard is None:
        raise QueryNotRunning(entry.state, entry.error)
    held = node.shards[entry.shard].held
    if held is not None:
        raise held
    return entry.shard


async def _arrived(node: Node, shard: int, wait_s: float) -> None:
    deadline_s = time.monotonic() + wait_s
    while node.hosting.is_arriving(shard) and time.monotonic() < deadline_s:
        await asyncio.sleep(0.02)
