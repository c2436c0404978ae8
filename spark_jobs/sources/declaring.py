"""A stream's statement: parsed, its topics made, published for the broker."""

from __future__ import annotations

import json
from collections.abc import Mapping

from confluent_kafka import KafkaException, Producer

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from topics.admin import Admin, Policies, service_topics
from tureen.errors import KafkaUnavailable, NotSupported
from tureen.protocol import TopicNames

ADMIN_TIMEOUT_S = 15.0
PUBLISH_TIMEOUT_S = 30.0


def declared_stream(sql: str) -> CreateStream:
    """The statement that declares the stream. Raises QueryError, LimitExceeded."""
    statement = parse(sql, {}, Limits())
    if not isinstance(statement, CreateStream):
        raise NotSupported(
            "this does not create a stream",
            line=1,
            column=1,
            hint="write CREATE STREAM name (column TYPE, ...)",
        )
    return statement


def ensure_topics(kafka: Mapping[str, str], service_id: str | None, statement: CreateStream) -> int:
    """Make or verify the topics of a run; the partitions of the stream's.

    service_id: whose topic of sources is needed; None: the stream is not declared.
    Raises KafkaUnavailable, TopicPolicyMismatch.
    """
    admin = Admin(kafka, ADMIN_TIMEOUT_S)
    if service_id is not None:
        names = TopicNames(service_id)
        admin.ensure(policy for policy in service_topics(names, Policies()) if policy.name == names.sources)
    stream = statement.stream
    return admin.ensure_source_topic(stream.topic, statement.partitions, arrival_time=not stream.event_time)


def declare(kafka: Mapping[str, str], service_id: str, statement: CreateStream) -> None:
    """Publish the statement under the stream's name; the broker takes an equal one again as done.

    Raises KafkaUnavailable.
    """
    topic = TopicNames(service_id).sources
    failures: list[object] = []

    def told(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            **kafka,
            "partitioner": "murmur2_random",  # as Java's clients: all writers of a key agree on its partition
            "log_level": 0,
            "error_cb": lambda _: None,
        }
    )
    value = json.dumps({"sql": statement.sql}).encode()
    producer.produce(topic, value, str(statement.stream.name).encode(), on_delivery=told)
    try:
        left = producer.flush(PUBLISH_TIMEOUT_S)
    except KafkaException as error:
        failures.append(error)
        left = 0
    if left or failures:
        reason = str(failures[0]) if failures else f"no answer within {PUBLISH_TIMEOUT_S:g} s"
        raise KafkaUnavailable(f"the stream could not be declared on {topic}: {reason}")
