"""``tureen sources``: the streams, tables and views there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from tureen import command_options, console
from tureen.catching_up import CatchingUp
from tureen.facts import Source


@click.command()
@click.option("--sql", "with_sql", is_flag=True, help="Print the statements that created them instead.")
@command_options.broker_options
def sources(with_sql: bool, broker: command_options.Broker) -> None:
    """List streams, tables and views, their rows and their NOW.

    waiting: rows above NOW, which enter when it passes them. late: rows that came after NOW had passed (see
    `tureen late`). Below the table: sources with late rows or dead letters, and columns that no record has.
    NOW is shown to the second; --json has all of it.
    """
    with broker.client() as client:
        found = client.sources()
    if broker.as_json:
        console.show_json([dict(one.facts) for one in found])
        return
    if with_sql:
        for one in found:
            click.echo(f"{(one.sql or '').strip().rstrip(';')};\n")
        return
    show(found)


def show(found: Sequence[Source]) -> None:
    """The table of them. A topic that is named as its source is not told twice: 80 columns are few."""
    console.show_table(
        ["source", "kind", "topic", "NOW (UTC)", "rows", "waiting", "late", "queries"],
        [
            (
                one.name,
                one.facts.get("kind") or "-",
                "same" if one.facts.get("topic") == one.name else one.facts.get("topic") or "-",
                console.instant_of_ms(None if one.now_ms is None else one.now_ms // 1_000 * 1_000),
                _count(one.rows),
                _count(one.pending),
                _count(one.late),
                _count(one.facts.get("queries")),
            )
            for one in found
        ],
        [False, False, False, False, True, True, True, True],
    )
    show_notes([one.facts for one in found])
    show_archived([one.facts for one in found])


def show_notes(found: Sequence[Mapping[str, Any]]) -> None:
    """What is likely to be wrong with sources: columns that no record has, records that gave no row."""
    for one in found:
        if one.get("catching_up"):
            behind = CatchingUp.of_message(one["catching_up"])
            console.err().print(str(behind), style="yellow", markup=False)
        absent = one.get("absent_columns") or ()
        if absent:
            console.err().print(
                f"{one['name']}: no record read since the broker started has a value of "
                f"{', '.join(absent)} (`tureen records {one['topic']}` shows some)",
                style="yellow",
                markup=False,
            )
        if one.get("late") or one.get("dead_letters"):
            since = one.get("counted_from_ms")
            told = "" if since is None else f" since {console.instant_of_ms(since)} UTC"
            console.err().print(
                f"{one['name']}: {one['late']:,} late, {one['dead_letters']:,} dead letters{told} "
                "(tureen late, tureen dead-letters)",
                style="yellow",
                markup=False,
            )


def show_archived(found: Sequence[Mapping[str, Any]]) -> None:
    """What is archived of streams, and how their history comes; nothing where there is no archive."""
    archived = [(one, told) for one in found if (told := one.get("archive")) is not None]
    if archived:
        console.show_table(
            ["archive of", "complete from (UTC)", "to (UTC)", "history", "backfilled rows"],
            [(str(one["name"]), *_archived(told)) for one, told in archived],
            [False, False, False, False, True],
        )


def _archived(told: Mapping[str, Any]) -> tuple[str, str, str, str]:
    backfill = told.get("backfill") or {}
    history = str(backfill.get("state") or "-").replace("_", " ")
    if told.get("error") is not None:
        history = "unreadable"
    rows = _count(backfill.get("rows"))
    if not told.get("archived"):
        return "-", "-", "not archived" if history == "complete" else history, rows
    began = told.get("complete_from_ms")
    return (
        "the beginning" if began is None else console.instant_of_ms(began),
        console.instant_of_ms(told.get("until_ms")),
        history,
        rows,
    )


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
