"""What a Kafka error means to us: one table from librdkafka's codes to our errors."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from tureen.errors import Fenced, KafkaUnavailable, TopicMissing, TureenError

MISSING_TOPIC = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
UNREACHABLE = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NETWORK_EXCEPTION,
    }
)


def cause_of(error: KafkaException | KafkaError) -> Any:
    """The KafkaError inside whatever confluent-kafka raised."""
    return error.args[0] if isinstance(error, KafkaException) else error


def as_ours(error: KafkaException | KafkaError, doing: str, topic: str = "") -> TureenError:
    """The error to raise for it: TopicMissing, Fenced or KafkaUnavailable; the last is for all others too."""
    cause = cause_of(error)
    code = cause.code()
    if code in MISSING_TOPIC and topic:
        return TopicMissing(topic, hint="create it, or correct its name")
    if code in FENCED:
        return Fenced(f"{doing}: another owner took over")
    hint = "is Kafka running, and is bootstrap.servers its address? `tureen up` starts one on this machine"
    return KafkaUnavailable(f"{doing}: {cause.str()}", hint=hint if code in UNREACHABLE else None)
