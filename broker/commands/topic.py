"""``tureen topic``: topics of Kafka, made, changed, listed and described without Kafka's own tools."""

from __future__ import annotations

from typing import Any

import click

from tureen import command_options, console
from tureen.protocol import TopicNames

PARTITIONS_MAX = 10_000


@click.group()
def topic() -> None:
    """Create, change, list and describe topics.

    Create a topic, or the stream over it, before anything is produced to it: the embedded Kafka makes no
    topic because a producer names it, and such records are refused in their delivery reports.
    """


@topic.command()
@click.argument("name")
@click.option(
    "--partitions",
    type=click.IntRange(1, PARTITIONS_MAX),
    default=1,
    show_default=True,
    help="How many it gets; records are in order within each.",
)
@click.option("--arrival-time", is_flag=True, help="Kafka stamps records: for a stream without a timestamp.")
@click.option("--table", is_flag=True, help="Keep the last record of each key for ever: for CREATE TABLE.")
@command_options.kafka_only_options
@command_options.json_option
def create(
    name: str, partitions: int, arrival_time: bool, table: bool, kafka: tuple[str, ...], as_json: bool
) -> None:
    """Create a topic. Exit code 0 also when it exists."""
    from topics.admin import Admin

    admin = Admin(command_options.kafka_settings(kafka))
    existed = name in admin.topics()
    held = admin.ensure_source_topic(name, partitions, arrival_time=arrival_time, table=table)
    if as_json:
        console.show_json({"topic": name, "existed": existed, "partitions": held})
        return
    became = "exists" if existed else "created"
    console.err().print(f"topic {name} {became}, {_counted(held, 'partition')}", style="green", markup=False)
    if existed and held != partitions:
        asked = _counted(partitions, "partition")
        console.err().print(f"it was not changed to {asked}", style="yellow", markup=False)


@topic.command(name="set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
@command_options.kafka_only_options
def set_(name: str, settings: tuple[str, ...], kafka: tuple[str, ...]) -> None:
    """Change settings of a topic: tureen topic set planes cleanup.policy=compact."""
    from topics.admin import Admin

    given = dict(one.partition("=")[::2] for one in settings)
    without = [one for one, value in given.items() if not value]
    if without:
        raise click.UsageError(f"{without[0]!r} has no value: write {without[0] or 'setting'}=value")
    Admin(command_options.kafka_settings(kafka)).set_configs(name, given)
    console.err().print(f"topic {name}: {', '.join(settings)}", style="green", markup=False)


@topic.command(name="list")
@click.option("--all", "with_own", is_flag=True, help="Also the broker's own and Kafka's.")
@click.option("--service-id", envvar="TUREEN_SERVICE_ID", default="tureen", show_default=True)
@command_options.kafka_only_options
@command_options.json_option
def list_(with_own: bool, service_id: str, kafka: tuple[str, ...], as_json: bool) -> None:
    """List topics and their partitions."""
    from topics.admin import Admin

    names = TopicNames(service_id)
    known = Admin(command_options.kafka_settings(kafka)).topics()
    shown = [(name, held) for name, held in sorted(known.items()) if with_own or not names.is_own(name)]
    if as_json:
        console.show_json([{"topic": name, "partitions": held} for name, held in shown])
    else:
        console.show_table(
            ["topic", "partitions"], [(name, str(held)) for name, held in shown], [False, True]
        )


@topic.command()
@click.argument("name")
@command_options.kafka_only_options
@command_options.json_option
def describe(name: str, kafka: tuple[str, ...], as_json: bool) -> None:
    """Show a topic's partitions, their offsets, and how long it keeps records."""
    from topics.admin import Admin
    from topics.newest import facts_of

    admin = Admin(command_options.kafka_settings(kafka))
    facts = facts_of(admin, name)
    settings = admin.configs([name])[name]
    kept = {one: settings.get(one) for one in ("cleanup.policy", "retention.ms", "message.timestamp.type")}
    partitions: list[dict[str, Any]] = [
        {"partition": number, "begin": facts.begin[number], "end": end}
        for number, end in sorted(facts.end.items())
    ]
    if as_json:
        console.show_json({"topic": name, "records": facts.records, "partitions": partitions, **kept})
        return
    rows = [(f"{p['partition']}", f"{p['begin']:,}", f"{p['end']:,}") for p in partitions]
    console.show_table(["partition", "first offset", "next offset"], rows, [True, True, True])
    told = ", ".join(f"{setting} {value}" for setting, value in kept.items())
    console.err().print(f"at most {_counted(facts.records, 'record')}, {told}", style="dim", markup=False)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
