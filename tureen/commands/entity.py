"""``tureen entity``: what the broker's engines are made of, what it uses, and what of it can be set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tureen import command_options, console
from tureen.units import duration_of_ns, size_of

ROWS_DEFAULT = 50


@click.group()
def entity() -> None:
    """List, show and set sources, synopses, operators, queues and queries.

    Every part of a running plan is an entity with attributes. Lists show what it uses; `show` has each
    attribute with its unit and range, and whether it can be set.
    """


@entity.command("list")
@click.option("--kind", help="Only query, source, synopsis, operator, queue, sink, ...")
@click.option("--query", metavar="HANDLE|ID|NAME", help="Only what this query shares.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=ROWS_DEFAULT,
    show_default=True,
    help="Show at most so many rows; --json lists all.",
)
@command_options.broker_options
def list_(kind: str | None, query: str | None, limit: int, broker: command_options.Broker) -> None:
    """List entities, those that took most computing time first."""
    with broker.client() as client:
        found = client.entities(kind=kind, query=query)
    if broker.as_json:
        console.show_json(found)
        return
    by_time = sorted(found, key=lambda one: -one["statistics"]["cpu_ns"])
    names = ["entity", "time", "share", "rows in", "rows out", "memory", "queries"]
    console.show_table(
        names,
        [_row(one) for one in by_time[:limit]],
        [name != "entity" for name in names],
        [name == "entity" for name in names],
    )
    rest = f", {limit:,} shown (--limit)" if len(found) > limit else ""
    console.err().print(f"{len(found):,} entities{rest}", style="dim")


def _row(one: Mapping[str, Any]) -> Sequence[str]:
    found = one["statistics"]
    counts = [f"{found[name]:,}" if found.get(name) is not None else "-" for name in ("rows_in", "rows_out")]
    return (
        one["id"],
        duration_of_ns(found["cpu_ns"]),
        f"{found['cpu_share']:.1%}",
        *counts,
        size_of(found["memory_bytes"]),
        f"{found['queries']:,}" if "queries" in found else "-",
    )


@entity.command()
@click.argument("entity_id", metavar="ID")
@command_options.broker_options
def show(entity_id: str, broker: command_options.Broker) -> None:
    """Show the attributes of an entity; of a query: query/HANDLE."""
    with broker.client() as client:
        found = client.entity(entity_id)
    _show(found, broker.as_json)


@entity.command("set")
@click.argument("entity_id", metavar="ID")
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--if-version", type=int, help="Refuse where it was changed since this version was shown.")
@command_options.broker_options
def set_(
    entity_id: str,
    values: tuple[str, ...],
    if_version: int | None,
    broker: command_options.Broker,
) -> None:
    """Set attributes of an entity while it runs: all of them, or none.

    NULL as the value of what is no text gives the default again.
    """
    wanted = command_options.pairs_of(values, "NAME=VALUE")
    with broker.client() as client:
        types = {one["name"]: one["type"] for one in client.entity(entity_id)["attributes"]}
        read = {name: typed(value, types.get(name, "boolean")) for name, value in wanted.items()}
        found = client.set_entity(entity_id, read, if_version=if_version)
    _show(found, broker.as_json)


def typed(text: str, type_: str) -> bool | int | float | str | None:
    """A value as JSON has it; a text that is none of its type is left to the broker to refuse.

    >>> typed("true", "boolean"), typed("3", "integer"), typed("0.5", "number"), typed("auto", "integer")
    (True, 3, 0.5, 'auto')
    >>> typed("nan", "number"), typed("1e400", "number")
    ('nan', '1e400')
    >>> typed("null", "number"), typed("null", "text")
    (None, 'null')
    """
    if type_ != "text" and text.upper() == "NULL":
        return None
    if type_ == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if type_ in ("integer", "number"):
        try:
            return int(text)
        except ValueError:
            pass
    if type_ == "number":
        try:
            number = float(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    return text


def _show(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        console.show_json(found)
        return
    out = console.out()
    shard = "" if found["shard"] is None else f", shard {found['shard']}"
    out.print(
        f"{found['id']}: {found['kind']}{shard}, version {found['version']}", markup=False, soft_wrap=True
    )
    console.show_table(
        ["attribute", "value", "unit", "set to", "description"],
        [
            (
                one["name"],
                one["value"],
                one["unit"] or "",
                (", ".join(one["choices"]) or one["accepts"]) if one["settable"] else "",
                one["about"],
            )
            for one in found["attributes"]
        ],
        [False, True, False, False, False],
    )
    for below in found["reads"]:
        out.print(f"  from {below}", style="dim", markup=False, soft_wrap=True)
