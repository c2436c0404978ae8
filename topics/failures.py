"""What a Kafka error means to us: one table from librdkafka's codes to our errors."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from tureen.errors import Fenced, KafkaUnavailable, TopicMissing, TureenError

MISSING_TOPIC = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
REFUSED_BY_TOPIC = MISSING_TOPIC | {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.POLICY_VIOLATION,
}
"""What a topic says by what it is: trying again helps only once the topic is another."""
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


def is_refusal(error: TureenError) -> bool:
    """Whether an error that :func:`as_ours` made is of a topic that is there, and says no."""
    made_of = error.__cause__
    if not isinstance(made_of, KafkaException):
        return False
    code = cause_of(made_of).code()
    return code in REFUSED_BY_TOPIC and code not in MISSING_TOPIC


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
