"""POST /sources/infer: a statement that reads a topic, guessed from its newest records.

Nothing is created.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from typing import Any

from broker.base.settings import Settings
from broker.http.errors import BadRequest
from broker.http.proposal import Topic, admits_name, propose
from broker.http.requests import body_object
from broker.node.node import Node
from topics.admin import refuse_own
from topics.newest import facts_of, look

RECORDS = 1_000
SAMPLE_BYTES_MAX = 16 * 1024 * 1024
WAIT_S = 5.0
NAME_CHARACTERS_MAX = 60
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka takes as a name."""
_HINT = 'send {"topic": "trades"}, and a name for the source if it is to have another'


def free_name(topic: str, taken: Collection[str]) -> str:
    """A name for a source that needs no quotes and is not taken.

    >>> free_name("Trades.eu-1", []), free_name("2024", []), free_name("a", ["a"])
    ('trades_eu_1', 't_2024', 'a_2')
    """
    name = re.sub(r"[^a-z0-9]+", "_", topic.lower()).strip("_")[:NAME_CHARACTERS_MAX]
    if not name[:1].isalpha():
        name = f"t_{name}".rstrip("_")
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


class Inference:
    """Guesses statements for topics."""

    def __init__(self, settings: Settings, node: Node) -> None:
        self._names = settings.names
        self._node = node
        self._readers = asyncio.Semaphore(1)

    async def propose(self, body: bytes) -> dict[str, Any]:
        """What :func:`broker.http.proposal.propose` gives, and what reads the topic already (``read_by``).

        Raises BadRequest, NotSupported for a topic of the service, KafkaUnavailable, TopicMissing.
        """
        fields = body_object(body, hint=_HINT)
        unknown = sorted(fields.keys() - {"topic", "name"})
        if unknown:
            raise BadRequest(f"unknown field {unknown[0]!r}", hint=_HINT)
        topic, name = fields.get("topic"), fields.get("name")
        if not isinstance(topic, str) or not topic:
            raise BadRequest("topic is missing", hint=_HINT)
        if not _TOPIC.fullmatch(topic):
            raise BadRequest(
                "this is no name of a topic", hint="topics have 1 to 249 characters of A-Z a-z 0-9 . _ -"
            )
        refuse_own(self._names, topic)
        if name is not None and (not isinstance(name, str) or not admits_name(name)):
            raise BadRequest("name is no name of a source", hint=_HINT)
        async with self._readers:
            return await asyncio.to_thread(self._propose, topic, name)

    def _propose(self, topic: str, name: str | None) -> dict[str, Any]:
        node = self._node
        config = node.prober.configs([topic])[topic]
        facts = facts_of(node.prober, topic)
        looked = look(
            node.kafka,
            topic,
            facts,
            RECORDS,
            timeout_s=WAIT_S,
            scanned_max=2 * RECORDS,
            bytes_max=SAMPLE_BYTES_MAX,
        )
        messages = sorted(looked.messages, key=lambda one: (one.partition(), one.offset()))
        found = Topic(
            topic,
            name or free_name(topic, node.directory.catalogue),
            facts.partitions,
            facts.records,
            "compact" in config.get("cleanup.policy", ""),
            config.get("message.timestamp.type") == "LogAppendTime",
        )
        readers = sorted(
            one.stream.name for one in [*node.directory.sources.values()] if one.stream.topic == topic
        )
        return propose(found, messages, node.engines.limits) | {"read_by": readers}
