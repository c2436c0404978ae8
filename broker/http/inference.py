"""A statement that reads a topic, guessed from its newest records: POST /sources/infer, and what CREATE ...
FROM TOPIC means.

Records are sampled and guessed at in the process that answers requests, one topic at a time, and nothing is
created. Limits: :data:`RECORDS`, :data:`SAMPLE_BYTES_MAX`, and :data:`WAIT_S` in which Kafka gives nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from typing import Any

from broker.base.settings import Settings
from broker.http.created import similar_topics
from broker.http.errors import BadRequest, NotInferred
from broker.http.proposal import admits_name, propose
from broker.http.requests import body_object, sql_of
from broker.http.sampled_topic import Topic
from broker.node.node import Node
from broker.runtime.reader_compilation import ReaderBeingCompiled, ReaderCompilation
from engine.language.query import CreateFromTopic
from topics.admin import refuse_own
from topics.newest import facts_of, look
from tureen.errors import TopicMissing

RECORDS = 1_000
SAMPLE_BYTES_MAX = 16 * 1024 * 1024
WAIT_S = 5.0
NAME_CHARACTERS_MAX = 60
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka takes as a name."""
READ_MIN = 0.95
"""The share of the sampled records that CREATE ... FROM TOPIC has to read; others would be dead letters."""
REASONS_TOLD = 3
_HINT = (
    'send {"topic": "trades"}, and a name for the source if it is to have another; '
    'or {"sql": "CREATE STREAM s FROM TOPIC \'trades\'"}'
)


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


def _heard(looking: asyncio.Future[Any]) -> None:
    """What it raises is not told where nobody waits for it any more."""
    if not looking.cancelled():
        looking.exception()


class Inference:
    """Guesses statements for topics."""

    def __init__(self, settings: Settings, node: Node, readers: ReaderCompilation) -> None:
        self._names = settings.names
        self._wait_s = settings.outcome_wait_ms / 1_000
        self.readers = readers
        self._sql_bytes_max = settings.sql_bytes_max
        self._node = node
        self._lookers = asyncio.Semaphore(1)

    async def propose(self, body: bytes) -> dict[str, Any]:
        """What :func:`broker.http.proposal.propose` gives, and what reads the topic already (``read_by``).

        Raises BadRequest, NotSupported for a topic of the service, KafkaUnavailable, TopicMissing; and as
        :meth:`meant` where a statement is given.
        """
        fields = body_object(body, hint=_HINT)
        unknown = sorted(fields.keys() - {"topic", "name", "sql"})
        if unknown:
            raise BadRequest(f"unknown field {unknown[0]!r}", hint=_HINT)
        if "sql" in fields:
            if len(fields) > 1:
                raise BadRequest("a statement names the topic and the source", hint=_HINT)
            asked = await self._node.understand(sql_of(fields, self._sql_bytes_max))
            if not isinstance(asked, CreateFromTopic):
                raise BadRequest("sql is no CREATE ... FROM TOPIC", hint=_HINT)
            return await self.meant(asked)
        topic, name = fields.get("topic"), fields.get("name")
        if not isinstance(topic, str) or not topic:
            raise BadRequest("topic is missing", hint=_HINT)
        if not _TOPIC.fullmatch(topic):
            raise BadRequest(
                "this is no name of a topic", hint="topics have 1 to 249 characters of A-Z a-z 0-9 . _ -"
            )
        if name is not None and (not isinstance(name, str) or not admits_name(name)):
            raise BadRequest("name is no name of a source", hint=_HINT)
        return await self._looked(topic, name or free_name(topic, self._node.directory.catalogue))

    async def meant(self, asked: CreateFromTopic) -> dict[str, Any]:
        """What a statement means: as :meth:`propose`, and ``sql`` is there.

        Raises NotInferred for a topic that is empty, or of whose records too many give no row; UnknownColumn
        and TypeMismatch for a timestamp that is none; NotSupported, KafkaUnavailable, TopicMissing.
        """
        found = await self._looked(asked.topic, asked.name, asked)
        sample = found["sample"]
        if found["sql"] is None:
            (warning,) = found["warnings"]
            raise NotInferred(asked.topic, warning["message"], hint=warning["hint"])
        if sample["read"] < READ_MIN * (sample["records"] - sample["names"]):
            why = "; ".join(
                f"{one['reason']} ({one['records']:,})" for one in sample["unreadable"][:REASONS_TOLD]
            )
            raise NotInferred(
                asked.topic,
                f"its records are mixed, and {sample['records'] - sample['read']:,} of {sample['records']:,} "
                f"would give no row: {why}",
                hint=f"declare the columns; `tureen infer {asked.topic}` proposes them all the same",
            )
        return found

    async def _looked(self, topic: str, name: str, asked: CreateFromTopic | None = None) -> dict[str, Any]:
        refuse_own(self._names, topic)
        looking = asyncio.ensure_future(self._looked_in_turn(topic, name, asked))
        looking.add_done_callback(_heard)
        self.readers.hurry()
        done, _ = await asyncio.wait({looking}, timeout=self._wait_s)
        if not done and self.readers.is_running:
            raise ReaderBeingCompiled("a format")
        return await looking

    async def _looked_in_turn(self, topic: str, name: str, asked: CreateFromTopic | None) -> dict[str, Any]:
        async with self._lookers:
            return await asyncio.to_thread(self._propose, topic, name, asked)

    def _propose(self, topic: str, name: str, asked: CreateFromTopic | None) -> dict[str, Any]:
        node = self._node
        try:
            facts = facts_of(node.setup.admin, topic)
        except TopicMissing:
            alike = similar_topics(node.setup.admin.topics(), topic)
            hint = f"there is a topic {alike[0]}" if alike else "`tureen topic list` shows those there are"
            raise TopicMissing(topic, hint=hint) from None
        config = node.setup.admin.configs([topic])[topic]
        looked = look(
            node.setup.kafka,
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
            name,
            facts.partitions,
            facts.records,
            "compact" in config.get("cleanup.policy", ""),
            config.get("message.timestamp.type") == "LogAppendTime",
        )
        readers = sorted(
            one.stream.name for one in [*node.directory.sources.values()] if one.stream.topic == topic
        )
        return propose(found, messages, node.setup.engines.limits, asked) | {"read_by": readers}
