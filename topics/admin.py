"""Topics: made when missing, verified when present.

A setting under which data would be lost (a cleanup policy, a number of partitions that is fixed, the kind of
timestamp) is verified and refused when wrong; what an operator may choose (retention of dead letters,
replication) is given at creation and left alone afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from topics.failures import as_ours, cause_of
from topics.settings import ENVIRONMENT_PREFIX, KafkaSettings
from topics.sizes import RECORD_BYTES_MAX
from tureen.errors import KafkaUnavailable, NotSupported, SettingsError, TopicMissing, TopicPolicyMismatch
from tureen.protocol import TopicNames

TIMEOUT_S = 15.0
POLL_S = 0.01
"""How often the cluster is asked whether it has done what it agreed to do."""
FAILURES_MAX = 3
"""After so many calls without an answer, one after another, the next is made by a new client."""
SHARDS_DEFAULT = 16
DAY_MS = 86_400_000

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Policies:
    """How the service's topics are made.

    shards: partitions of ``.queries`` and ``.steps``, fixed for the life of a service.
    record_bytes_max: what each topic takes.
    steps_retention_ms: at least the widest window and the longest a store may lag behind; -1: for ever.
    replication: copies of each topic; -1: the cluster's default.
    """

    shards: int = SHARDS_DEFAULT
    steps_retention_ms: int = 7 * DAY_MS
    letters_retention_ms: int = 7 * DAY_MS
    requests_retention_ms: int = DAY_MS
    record_bytes_max: int = RECORD_BYTES_MAX
    replication: int = -1


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """One topic: ``config`` is given at creation; ``verified`` names those that must be so for ever.

    least: settings that must be so large. fixed_partitions: the number of partitions must be exactly this.
    instead: what else than changing the topic helps.
    """

    name: str
    partitions: int
    config: Mapping[str, str]
    verified: tuple[str, ...] = ("cleanup.policy",)
    fixed_partitions: bool = False
    least: Mapping[str, int] = field(default_factory=dict)
    instead: str = "use another topic"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """topic_id: differs from that of an earlier topic of the same name. partitions: how many it has.
    is_led: whether each of them has a leader, so that it can be read and written.
    """

    topic_id: str
    partitions: int
    is_led: bool


def service_topics(names: TopicNames, policies: Policies) -> list[TopicPolicy]:
    """The topics of a service and their policies."""
    size = {"max.message.bytes": str(policies.record_bytes_max)}
    least = {"max.message.bytes": policies.record_bytes_max}
    compacted = {"cleanup.policy": "compact"} | size

    def deleted(retention_ms: int) -> dict[str, str]:
        return {"cleanup.policy": "delete", "retention.ms": str(retention_ms)} | size

    # The control process reads what clients write with any codec; not every client library has them all.
    plain = {"compression.type": "uncompressed"}
    control = ("cleanup.policy", "compression.type")
    steps, requests = deleted(policies.steps_retention_ms), deleted(policies.requests_retention_ms)
    return [
        TopicPolicy(names.queries, policies.shards, compacted | plain, control, True, least),
        TopicPolicy(names.sources, 1, compacted | plain, control, True, least),
        TopicPolicy(names.status, 1, compacted, least=least),
        TopicPolicy(names.plans, 1, compacted, least=least),
        TopicPolicy(names.steps, policies.shards, steps, fixed_partitions=True, least=least),
        TopicPolicy(names.snapshot_requests, 1, requests | plain, control),
        *letter_topics(names, policies),
    ]


def letter_topics(names: TopicNames, policies: Policies) -> list[TopicPolicy]:
    """The topics for late rows and dead letters."""
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(policies.letters_retention_ms),
        "max.message.bytes": str(policies.record_bytes_max),
    }
    least = {"max.message.bytes": policies.record_bytes_max}
    return [TopicPolicy(name, 1, config, least=least) for name in (names.late, names.dead_letters)]


class Admin:
    """Asks and changes a cluster. Calls block; safe to use from several threads.

    Raises SettingsError for settings that librdkafka refuses. Every method raises KafkaUnavailable when no
    answer comes in time.
    """

    def __init__(self, settings: KafkaSettings, timeout_s: float = TIMEOUT_S) -> None:
        self._settings = {"log_level": 0, **settings}
        try:
            self._client = AdminClient(self._settings)
        except KafkaException as refused:  # a setting that is unknown, or has a value that it cannot have
            raise SettingsError(
                f"Kafka's settings cannot be used: {cause_of(refused).str()}",
                hint=f"correct {ENVIRONMENT_PREFIX}<SETTING>, or the properties file; names are librdkafka's",
            ) from None
        self._failures = 0
        self._timeout_s = timeout_s

    def ensure_service_topics(self, names: TopicNames, policies: Policies | None = None) -> None:
        """Make what is missing, verify what is there. Raises TopicPolicyMismatch."""
        policies = policies or Policies()
        self.ensure(service_topics(names, policies), policies.replication)

    def ensure_source_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        arrival_time: bool = False,
        table: bool = False,
        replication: int = -1,
    ) -> int:
        """A source's topic; returns how many partitions it has, which is ``partitions`` only if it is new.

        arrival_time: a new one stamps records itself (message.timestamp.type=LogAppendTime), and that of a
        stream must; versions of a table are in the order of their offsets, whoever stamped them. table: it
        must be compacted, so that it holds the last record of every key for ever; a new one holds deletions
        for as long as the journal is kept, so that no replay misses one.
        Raises TopicPolicyMismatch when it exists and is not so.
        """
        config = {"message.timestamp.type": "LogAppendTime"} if arrival_time else {}
        verified, instead = tuple(config), "name the column that has the time: WITH (timestamp = 'column')"
        if table:
            config |= {
                "cleanup.policy": "compact",
                "delete.retention.ms": str(Policies().steps_retention_ms),
            }
            verified, instead = ("cleanup.policy",), "use another topic"
        self.ensure([TopicPolicy(topic, partitions, config, verified, instead=instead)], replication)
        return self.partitions(topic)

    def ensure(self, wanted: Iterable[TopicPolicy], replication: int = -1) -> None:
        """Make topics that are missing and verify the others; nothing is made when one is refused."""
        policies = {policy.name: policy for policy in wanted}
        present = self._present(policies)
        self._verify([policy for name, policy in policies.items() if name in present], present)
        missing = [policy for name, policy in policies.items() if name not in present]
        if not missing:
            return
        futures = self._client.create_topics(
            [NewTopic(p.name, p.partitions, replication, config=dict(p.config)) for p in missing],
            operation_timeout=self._timeout_s,
        )
        raced = []
        for name, future in futures.items():
            try:
                self._asked(f"making topic {name}", future.result)
            except _Raced:
                raced.append(policies[name])
        self._await(policies)
        if raced:
            self._verify(raced, self._present(policies))

    def _present(self, names: Iterable[str]) -> dict[str, int]:
        return {name: facts.partitions for name, facts in self.describe(names).items() if facts is not None}

    def _await(self, names: Iterable[str]) -> None:
        """Until each topic has a leader: a new one is announced a moment after it was made."""
        deadline = time.monotonic() + self._timeout_s
        waiting = set(names)
        while True:
            known = self.describe(waiting)
            waiting = {name for name, facts in known.items() if facts is None or not facts.is_led}
            if not waiting:
                return
            if time.monotonic() > deadline:
                raise TopicMissing(min(waiting), hint="it was created, but has no leader")
            time.sleep(POLL_S)

    def _verify(self, policies: list[TopicPolicy], present: Mapping[str, int]) -> None:
        for policy in policies:
            if policy.fixed_partitions and present[policy.name] != policy.partitions:
                raise TopicPolicyMismatch(
                    policy.name,
                    "partitions",
                    str(policy.partitions),
                    str(present[policy.name]),
                    hint="set the number of shards to the topic's partitions, or choose another service id",
                )
        found = self.configs([policy.name for policy in policies])
        for policy in policies:
            _require(policy, found[policy.name])

    def reach(self) -> None:
        """Have the cluster answer something small."""
        self._asked("reaching Kafka", self._client.describe_cluster(request_timeout=self._timeout_s).result)

    def cluster_id(self) -> str:
        """Differs from that of another cluster; empty where this one has none."""
        asked = self._client.describe_cluster(request_timeout=self._timeout_s)
        return str(self._asked("reaching Kafka", asked.result).cluster_id or "")

    def topics(self) -> dict[str, int]:
        """Every topic and its number of partitions."""
        return {name: len(topic.partitions) for name, topic in self._metadata().topics.items()}

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has. Raises TopicMissing."""
        return self.facts(topic).partitions

    def topic_id(self, topic: str) -> str:
        """Differs from that of an earlier topic of the same name. Raises TopicMissing."""
        return self.facts(topic).topic_id

    def facts(self, topic: str) -> TopicFacts:
        """What a topic is. Raises TopicMissing."""
        found = self.describe([topic])[topic]
        if found is None:
            raise TopicMissing(topic, hint="create it, or correct its name")
        return found

    def describe(self, topics: Iterable[str]) -> dict[str, TopicFacts | None]:
        """What topics are, None for one that is not there; by one request for all of them."""
        names = list(topics)
        if not names:
            return {}
        futures = self._client.describe_topics(TopicCollection(names), request_timeout=self._timeout_s)
        found: dict[str, TopicFacts | None] = {}
        for name, future in futures.items():
            try:
                told = self._asked(f"describing topic {name}", future.result, name)
                is_led = bool(told.partitions) and all(
                    one.leader is not None and one.leader.id >= 0 for one in told.partitions
                )
                found[name] = TopicFacts(str(told.topic_id), len(told.partitions), is_led)
            except TopicMissing:
                found[name] = None
        return found

    def configs(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """topic -> setting -> value."""
        if not topics:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        found = {}
        futures = self._client.describe_configs(resources, request_timeout=self._timeout_s)
        for resource, future in futures.items():
            entries = self._asked(f"reading the settings of {resource.name}", future.result, resource.name)
            found[resource.name] = {name: entry.value or "" for name, entry in entries.items()}
        return found

    def set_configs(self, topic: str, settings: Mapping[str, str]) -> None:
        """Change settings of a topic and leave the others. Raises TopicMissing, SettingsError."""
        self.facts(topic)
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        asked = self._client.incremental_alter_configs([resource], request_timeout=self._timeout_s)

        def done() -> None:
            try:
                asked[resource].result()
            except KafkaException as refused:
                if cause_of(refused).code() in (KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION):
                    raise SettingsError(f"Kafka refuses it: {cause_of(refused).str()}") from None
                raise

        self._asked(f"changing the settings of {topic}", done, topic)

    def begin_offsets(self, topic: str) -> dict[int, int]:
        """partition -> the offset of the first record that is still there. Raises TopicMissing."""
        return self.begins({topic: range(self.partitions(topic))})[topic]

    def end_offsets(self, topic: str) -> dict[int, int]:
        """partition -> the offset after the last committed record or marker. Raises TopicMissing."""
        return self.ends({topic: range(self.partitions(topic))})[topic]

    def begins(self, partitions: Mapping[str, Iterable[int]]) -> dict[str, dict[int, int]]:
        """topic -> as :meth:`begin_offsets`, of some partitions, by one request. Raises TopicMissing."""
        return self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def ends(self, partitions: Mapping[str, Iterable[int]]) -> dict[str, dict[int, int]]:
        """topic -> as :meth:`end_offsets`, of some partitions, by one request. Raises TopicMissing."""
        return self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def _offsets(self, partitions: Mapping[str, Iterable[int]], spec: Any) -> dict[str, dict[int, int]]:
        asked = {TopicPartition(name, number): spec for name, some in partitions.items() for number in some}
        found: dict[str, dict[int, int]] = {name: {} for name in partitions}
        if not asked:
            return found
        futures = self._client.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._timeout_s
        )
        for at, future in futures.items():
            told = self._asked(f"offsets of {at.topic}", future.result, at.topic)
            found[at.topic][at.partition] = told.offset
        return found

    def delete_topics(self, topics: Iterable[str]) -> None:
        """Delete topics with their records; those that do not exist are passed over.

        Returns when the cluster has ceased to list them, which is a moment after it agreed to delete them.
        """
        going = set(topics)
        futures = self._client.delete_topics(list(going), operation_timeout=self._timeout_s)
        for name, future in futures.items():
            try:
                self._asked(f"deleting topic {name}", future.result, name)
            except TopicMissing:
                continue
        deadline = time.monotonic() + self._timeout_s
        while not going.isdisjoint(self.topics()) and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def members(self, group: str) -> int:
        """How many consumers a group has; 0 also where there is no such group. One that died without a word
        counts until its session ends.
        """
        future = self._client.describe_consumer_groups([group], request_timeout=self._timeout_s)[group]

        def found() -> int:
            try:
                return len(future.result().members)
            except KafkaException as error:
                if cause_of(error).code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return 0
                raise

        return self._asked(f"asking who is in the group {group}", found)

    def _metadata(self) -> Any:
        return self._asked("reaching Kafka", lambda: self._client.list_topics(timeout=self._timeout_s))

    def _asked(self, doing: str, call: Callable[[], Answer], topic: str = "") -> Answer:
        try:
            answer = call()
        except KafkaException as error:
            if cause_of(error).code() == KafkaError.TOPIC_ALREADY_EXISTS:
                raise _Raced from None
            ours = as_ours(error, doing, topic)
            if isinstance(ours, KafkaUnavailable):
                self._failed()
            raise ours from error
        self._failures = 0
        return answer

    def _failed(self) -> None:
        """A client that was left without Kafka for long may not find back to it by itself."""
        self._failures += 1
        if self._failures >= FAILURES_MAX:
            self._failures = 0
            self._client = AdminClient(self._settings)


def _require(policy: TopicPolicy, found: Mapping[str, str]) -> None:
    """Raise TopicPolicyMismatch with all that is not as a policy has it, and the command that sets it."""
    wrong, commands = [], []
    for setting in policy.verified:
        expected, is_ = policy.config[setting], found[setting]
        if set(expected.split(",")) != set(is_.split(",")):
            wrong.append((setting, expected, is_))
            commands.append(f"{setting}={expected}")
    for setting, least in policy.least.items():
        if int(found[setting]) < least:
            wrong.append((setting, f"at least {least}", found[setting]))
            commands.append(f"{setting}={least}")
    if wrong:
        hint = f"set it: tureen topic set {policy.name} {' '.join(commands)}; or {policy.instead}"
        raise TopicPolicyMismatch(policy.name, *wrong[0], *wrong[1:], hint=hint)


class _Raced(Exception):
    """Another process made the topic a moment before."""


def refuse_own(names: TopicNames, topic: str) -> None:
    """Raise NotSupported for a topic of the service: some hold handles of others, and a stream over one could
    feed itself without end. Or for one of Kafka's.
    """
    if names.is_own(topic):
        raise NotSupported(
            f"topic {topic} belongs to the broker or to Kafka, and is not read as data",
            hint="copy the records to another topic and read that one; who runs Kafka may look into it there",
        )
