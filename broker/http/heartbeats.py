"""POST /sources/{name}/heartbeat: the sender promises that no row below an instant follows.

It counts from its place in the topic: what was in the topic when it came is read first, so that none of that
is late by it. Nothing of it waits: where reading takes too long it is refused, and may be sent again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from broker.base.settings import Settings
from broker.http.errors import BadRequest, status_of
from broker.http.requests import body_object
from broker.http.writes import Answer
from broker.node.node import Node
from broker.shard.shard_command import ShardCommand
from engine.sources.promise import check_promise
from tureen.errors import BrokerUnavailable, TureenError, UnknownSource

LOOK_AGAIN_S = 0.01
INSTANT_MIN_MS = -(2**53)
"""Instants before this are a mistake of the sender; those far ahead are refused by the clock."""
_HINT = 'send {"partition": 0, "ms": 1700000000000}; without a partition, or with null, all are meant'


class UnknownPartition(TureenError):
    """The topic of a stream has no partition of this number."""

    code = "unknown_partition"


class Heartbeats:
    """Heartbeats by way of the shards that have the stream."""

    def __init__(self, settings: Settings, node: Node) -> None:
        self._settings = settings
        self._node = node

    async def send(self, name: str, body: bytes) -> Answer:
        """Raises BadRequest, UnknownSource, UnknownPartition, HeartbeatRefused, BrokerUnavailable,
        KafkaUnavailable, TopicMissing.
        """
        partition, ms = _promise(body)
        entry = self._node.directory.sources.get(name)
        if entry is None:
            raise UnknownSource(name)
        check_promise(entry.stream, {0: ms}, time.time_ns() // 1_000_000)
        begins, ends = await asyncio.to_thread(self._places, entry.stream.topic)
        if partition is not None and partition not in ends:
            raise UnknownPartition(
                f"topic {entry.stream.topic} has no partition {partition}",
                hint=f"it has the partitions 0 to {len(ends) - 1}",
            )
        meant = sorted(ends) if partition is None else [partition]
        before = {one: ends[one] for one in meant if ends[one] > begins[one]}
        deadline_s = time.monotonic() + self._settings.outcome_wait_ms / 1_000
        while not self._have_read(name, entry.shard, before):
            if time.monotonic() > deadline_s:
                raise BrokerUnavailable(
                    f"{name} has records that were not read yet, and the heartbeat follows them",
                    hint="send it again when the stream has caught up; GET /sources tells what is behind",
                )
            await asyncio.sleep(LOOK_AGAIN_S)
        command = ShardCommand.heartbeat(name, dict.fromkeys(meant, ms))
        shards = [entry.shard, *(one for one in self._shards_with(name) if one != entry.shard)]
        outcomes = [*await asyncio.gather(*(self._node.shards.hand_over(one, [command]) for one in shards))]
        for (outcome,) in outcomes:
            error = outcome.get("error")
            if error:
                return status_of(error), error
        ((home,), *_) = outcomes
        raised = home.get("raised", [])
        return 200, {
            "name": name,
            "ms": ms,
            "raised": raised,
            "unchanged": [one for one in meant if one not in raised],
            "now_ms": self._now_ms(name, entry.shard),
            "position": home.get("position"),
        }

    def _places(self, topic: str) -> tuple[Mapping[int, int], Mapping[int, int]]:
        admin = self._node.setup.admin
        return admin.begin_offsets(topic), admin.end_offsets(topic)

    def _shards_with(self, name: str) -> list[int]:
        """The stream's home and those that have it as a replica."""
        return [
            shard.number
            for shard in self._node.shards
            if any(info.name == name for info in shard.view().sources())
        ]

    def _have_read(self, name: str, home: int, before: Mapping[int, int]) -> bool:
        """Whether all that have the stream have read its partitions up to these offsets."""
        for number in {home, *self._shards_with(name)}:
            read = next(
                (one.next_offsets for one in self._node.shards[number].view().sources() if one.name == name),
                {},
            )
            if any(read.get(partition, 0) < offset for partition, offset in before.items()):
                return False
        return True

    def _now_ms(self, name: str, shard: int) -> int | None:
        infos = self._node.shards[shard].view().sources()
        return next((one.now_ms for one in infos if one.name == name), None)


def _promise(body: bytes) -> tuple[int | None, int]:
    """(partition, None: all; ms since 1970). Raises BadRequest."""
    fields: dict[str, Any] = body_object(body, hint=_HINT)
    unknown = sorted(fields.keys() - {"partition", "ms"})
    if unknown:
        raise BadRequest(f"unknown field {unknown[0]!r}", hint=_HINT)
    partition, ms = fields.get("partition"), fields.get("ms")
    if type(ms) is not int:
        raise BadRequest("ms is not an integer", hint=_HINT)
    if ms < INSTANT_MIN_MS:
        raise BadRequest(f"ms is below {INSTANT_MIN_MS}", hint=_HINT)
    if partition is not None and type(partition) is not int:
        raise BadRequest("partition is neither an integer nor null", hint=_HINT)
    return partition, ms
