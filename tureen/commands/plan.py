"""``tureen plan``: plans as files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tureen import cells, command_options, console
from tureen.plan_files.difference import differences
from tureen.plan_files.files import YAML, load, read, written
from tureen.plan_files.text import text_of

if TYPE_CHECKING:
    from tureen.client import Client

FILE = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


@click.group()
def plan() -> None:
    """Show, check, compare, export, register and apply plans of queries as files.

    A plan is a query as a graph of named operators, in JSON or, where PyYAML is installed, in YAML; its
    schema is at GET /plans/schema.
    """


@plan.command()
@click.argument("handle", metavar="HANDLE|ID|NAME")
@command_options.broker_options
def show(handle: str, broker: command_options.Broker) -> None:
    """Show the operators of a query's plan and what each reads."""
    with broker.client() as client:
        found = client.plan_file(handle)
    if broker.as_json:
        console.show_json(found)
        return
    out = console.out()
    if "sql" in found:
        out.print(found["sql"], markup=False, soft_wrap=True)
    for name, node in found.get("nodes", {}).items():
        rest = {field: value for field, value in node.items() if field != "op"}
        mark = "  <- the answer" if name == found["output"] else ""
        out.print(f"{name}: {node['op']}{mark}", markup=False, soft_wrap=True)
        for field, value in rest.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            out.print(f"    {field}: {cells.cell(text)}", style="dim", markup=False, soft_wrap=True)
    for field in ("stream", "with", "emit", "options"):
        if field in found:
            text = json.dumps(found[field], ensure_ascii=False)
            out.print(f"{field}: {text}", markup=False, soft_wrap=True)


@plan.command()
@click.argument("handle", metavar="HANDLE|ID|NAME")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file."
)
@command_options.broker_options
def export(handle: str, output: Path | None, broker: command_options.Broker) -> None:
    """Write the plan of a query: to a file, YAML by its ending, or as JSON to stdout."""
    with broker.client() as client:
        found = client.plan_file(handle)
    if output is None or broker.as_json:
        click.echo(written(found, ".json"), nl=False)
    if output is not None:
        output.write_text(written(found, output.name), encoding="utf-8")


@plan.command()
@click.argument("file", type=FILE)
@click.option("--offline", is_flag=True, help="Only what can be checked without a broker; print the SQL.")
@command_options.broker_options
def validate(file: Path, offline: bool, broker: command_options.Broker) -> None:
    """Check a plan: its shape, its names, and with a broker its expressions and types."""
    given = _file(file)
    if offline:
        found: Mapping[str, Any] = {"sql": text_of(given).sql}
    else:
        with broker.client() as client:
            found = client.validate_plan(given)
    if broker.as_json:
        console.show_json(found)
        return
    click.echo(found["sql"])
    if "columns" in found:
        columns = ", ".join(f"{one['name']} {one['type']}" for one in found["columns"])
        console.err().print(f"valid; columns: {columns}", style="green", markup=False)


@plan.command()
@click.argument("one", metavar="FILE|HANDLE|ID|NAME")
@click.argument("other", metavar="FILE|HANDLE|ID|NAME")
@command_options.broker_options
def diff(one: str, other: str, broker: command_options.Broker) -> None:
    """Compare two plans, each a file or that of a query; exit code 1 where they differ."""
    with broker.client() as client:
        before, after = (_file_or_query(each, client) for each in (one, other))
    found = list(differences(before, after))
    if broker.as_json:
        keys = ("sign", "path", "before", "after")
        console.show_json([dict(zip(keys, each, strict=True)) for each in found])
    else:
        for sign, path, was, now in found:
            if sign != "+":
                click.echo(f"- {path}: {json.dumps(was, ensure_ascii=False)}")
            if sign != "-":
                click.echo(f"+ {path}: {json.dumps(now, ensure_ascii=False)}")
    sys.exit(1 if found else 0)


@plan.command()
@click.argument("handle", metavar="HANDLE|ID|NAME")
@click.argument("file", type=FILE)
@command_options.broker_options
def apply(handle: str, file: Path, broker: command_options.Broker) -> None:
    """Apply a plan to a query that runs: its options, and what it sets of entities.

    State carries over and no answer changes; a plan that means another query is refused.
    """
    given = _file(file)
    with broker.client() as client:
        status = client.apply_plan(handle, given)
    if broker.as_json:
        console.show_json(dict(status.facts))
    else:
        console.err().print(f"query {status.query_id} is {status.state}", style="green")


@plan.command()
@click.argument("file", type=FILE)
@click.option("--handle", help="A secret of your own, at least 22 characters.  [default: a new one]")
@command_options.broker_options
def register(file: Path, handle: str | None, broker: command_options.Broker) -> None:
    """Register a plan as a query and print its handle."""
    given = _file(file)
    with broker.client() as client:
        query = client.register_plan(given, handle)
        if broker.as_json:
            console.show_json(console.registered(query))
        else:
            console.show_handle(query, on_stdout=True, topics=None)


def _file(path: Path) -> Any:
    if str(path) != "-":
        return load(path)
    text = console.stdin_text()
    return read(text, ".json" if text.lstrip().startswith("{") else YAML[0])


def _file_or_query(given: str, client: Client) -> Any:
    path = Path(given)
    if path.is_file():
        return load(path)
    if len(path.parts) > 1 or path.suffix in (".json", *YAML):
        raise click.BadParameter(f"there is no file {given!r}", param_hint="FILE|HANDLE|ID")
    return client.plan_file(given)
