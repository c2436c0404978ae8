"""``tureen records``, ``late``, ``dead-letters``: what is in topics, what was refused, and why.

They read Kafka themselves, so they also work while the broker is away; it is asked for the topic of a source
whose name is not that of a topic. Values are shown as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from topics.shown import headers_of, json_of, refusal_of
from tureen import command_options, console
from tureen.errors import TopicMissing, TureenError
from tureen.protocol import TopicNames

if TYPE_CHECKING:
    from confluent_kafka import Message

LIMIT_MAX = 10_000
ASKED_S = 10.0
"""How long the broker is waited for when it is asked for the topic of a source."""
SHOWN_CHARACTERS = 300

_limit = click.option(
    "--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="The newest so many."
)
_name = click.argument("name", required=False)
_service_id = click.option(
    "--service-id",
    envvar="TUREEN_SERVICE_ID",
    default="tureen",
    show_default=True,
    help="Prefix of the broker's topics.",
)


@click.command()
@click.argument("name")
@_limit
@_service_id
@command_options.kafka_only_options
@command_options.broker_options
def records(
    name: str,
    limit: int,
    service_id: str,
    kafka: tuple[str, ...],
    broker: command_options.Broker,
) -> None:
    """Show the newest records of a topic, newest last.

    NAME is a topic, or else what EMIT CHANGES INTO names, or a stream or a table, whose topic is read.

    \b
    tureen records trades --limit 5
    tureen records trades --json | jq .value
    """
    topic = _topic_of(name, kafka, service_id, broker)
    if topic != name:
        console.err().print(f"records of topic {topic}", style="dim", markup=False)
    found = _newest(kafka, topic, limit)
    if broker.as_json:
        for one in found:
            console.show_json(_record(one))
        return
    console.show_table(
        ["partition", "offset", "timestamp (UTC)", "key", "value"],
        [
            (
                str(one.partition()),
                str(one.offset()),
                console.instant_of_ms(one.timestamp()[1]),
                _shown(one.key()),
                _shown(one.value()),
            )
            for one in found
        ],
        [True, True, False, False, False],
        [False, False, False, True, True],
    )
    if not found:
        console.err().print(f"topic {topic} has no records", style="dim", markup=False)


@click.command(name="dead-letters")
@_name
@_limit
@_service_id
@command_options.kafka_only_options
@command_options.broker_options
def dead_letters(
    name: str | None,
    limit: int,
    service_id: str,
    kafka: tuple[str, ...],
    broker: command_options.Broker,
) -> None:
    """Show the newest records that gave no row, and why.

    NAME, a topic or a stream or table over it, shows its records alone.

    \b
    tureen dead-letters trades
    """
    of = None if name is None else _topic_of(name, kafka, service_id, broker)
    _refused(TopicNames(service_id).dead_letters, "no dead letters", limit, of, kafka, broker.as_json)


@click.command()
@_name
@_limit
@_service_id
@command_options.kafka_only_options
@command_options.broker_options
def late(
    name: str | None,
    limit: int,
    service_id: str,
    kafka: tuple[str, ...],
    broker: command_options.Broker,
) -> None:
    """Show the newest records that came late: at or before NOW of their stream.

    NAME, a topic or a stream over it, shows its records alone.
    """
    of = None if name is None else _topic_of(name, kafka, service_id, broker)
    _refused(TopicNames(service_id).late, "no late records", limit, of, kafka, broker.as_json)


def _refused(
    topic: str, nothing: str, limit: int, of: str | None, kafka: tuple[str, ...], as_json: bool
) -> None:
    """Records of a topic that holds those of others. of: of this one alone."""
    wanted: Callable[[Message], bool] = partial(_is_of, topic=of) if of is not None else lambda _: True
    found = _newest(kafka, topic, limit, wanted)
    if as_json:
        for one in found:
            console.show_json(_refusal(one))
        return
    console.show_table(
        ["at (UTC)", "topic", "partition", "offset", "reason", "value"],
        [
            (
                console.instant_of_ms(one.timestamp()[1]),
                refused.topic or "-",
                "-" if refused.partition is None else str(refused.partition),
                "-" if refused.offset is None else str(refused.offset),
                refused.reason or "-",
                _shown(one.value()),
            )
            for one in found
            for refused in [refusal_of(headers_of(one))]
        ],
        [False, False, True, True, False, False],
        [False, False, False, False, True, True],
        folded="reason",
    )
    if not found:
        console.err().print(nothing if of is None else f"{nothing} of {of}", style="dim", markup=False)


def _topic_of(name: str, kafka: tuple[str, ...], service_id: str, broker: command_options.Broker) -> str:
    """The topic that a name stands for. Raises TopicMissing, KafkaUnavailable."""
    from topics.admin import Admin
    from topics.newest import facts_of

    admin = Admin(command_options.kafka_settings(kafka))
    for topic in (name, TopicNames(service_id).results_into(name)):
        with suppress(TopicMissing):
            facts_of(admin, topic)
            return topic
    try:
        with broker.client(timeout=ASKED_S) as client:
            sources = {one.name.lower(): one for one in client.sources()}
    except TureenError as error:
        hint = f"`tureen topic list` lists topics; whether a source is named so is not known: {error.message}"
        raise TopicMissing(name, hint=hint) from None
    source = sources.get(name.lower())
    if source is None:
        raise TopicMissing(name, hint="`tureen topic list` lists topics, `tureen sources` those of sources")
    if source.facts.get("topic") is None:
        hint = f"{source.name} is a {source.facts.get('kind')}, which reads none: SELECT shows its rows"
        raise TopicMissing(name, hint=hint)
    return str(source.facts["topic"])


def _newest(
    kafka: tuple[str, ...], topic: str, limit: int, wanted: Callable[[Message], bool] = lambda _: True
) -> list[Message]:
    from topics.admin import Admin
    from topics.newest import facts_of, newest

    settings = command_options.kafka_settings(kafka)
    return newest(settings, topic, facts_of(Admin(settings), topic), limit, wanted=wanted)


def _is_of(message: Message, topic: str) -> bool:
    return refusal_of(headers_of(message)).topic == topic


def _record(message: Message) -> dict[str, Any]:
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": message.timestamp()[1],
        "key": json_of(message.key()),
        "value": json_of(message.value()),
    }


def _refusal(message: Message) -> dict[str, Any]:
    refused = refusal_of(headers_of(message))
    return {
        "at_ms": message.timestamp()[1],
        "topic": refused.topic,
        "partition": refused.partition,
        "offset": refused.offset,
        "reason": refused.reason,
        "key": json_of(message.key()),
        "value": json_of(message.value()),
    }


def _shown(data: bytes | None) -> str:
    if data is None:
        return "-"
    part = data[:SHOWN_CHARACTERS]
    try:
        text = part.decode("utf-8")
    except UnicodeDecodeError:
        text = repr(part)
    return text + ("…" if len(data) > SHOWN_CHARACTERS else "")
