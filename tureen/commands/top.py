"""``tureen top``: which queries, operators and sources use the broker's time and memory, as it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tureen import command_options, console
from tureen.cells import cell
from tureen.memory_text import memory_facts, memory_line
from tureen.units import duration_of_ns, size_of
from tureen.usage import SORTS, Sort, Use, Uses, ordered, uses

if TYPE_CHECKING:
    from rich.table import Table

    from tureen.client import Client

EVERY_S = 2.0
ROWS = 15
TEXT_CHARACTERS = 70
UNREAD_NAMED = 5
"""So many streams with unread records are named."""


@click.command()
@click.option("--once", is_flag=True, help="Measure one interval, print it, and end; so it is in a pipe.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.2, 60.0),
    default=EVERY_S,
    show_default=True,
    help="Seconds of an interval.",
)
@click.option("--sort", type=click.Choice(SORTS), default="cpu", show_default=True, help="What comes first.")
@click.option("--kind", help="Only query, source, synopsis, operator, queue, sink, ...")
@click.option("--limit", type=click.IntRange(1), default=ROWS, show_default=True, help="Rows of each table.")
@command_options.broker_options
def top(
    once: bool,
    every_s: float,
    sort: Sort,
    kind: str | None,
    limit: int,
    broker: command_options.Broker,
) -> None:
    """Show who uses the broker's time and memory.

    What queries share is divided among them in equal parts, so the shares of all queries, and of what nobody
    reads, are 100%.  NOW behind: behind the newest record that was read, by event time; a line tells of
    streams with records that were not read yet.  --json prints a line of JSON for each interval.
    """
    with broker.client() as client:
        watched = _Watched(client)
        once = once or not (
            broker.as_json or console.out().is_terminal
        )  # nobody can look at a pipe again and again
        if broker.as_json or once:
            while True:
                found = watched.next(every_s)
                if broker.as_json:
                    told = as_json_value(found, watched.unread, sort, kind, limit)
                    console.show_json(told | {"worker_memory": memory_facts(watched.memory)})
                else:
                    console.out().print(f"memory: {memory_line(watched.memory)}", soft_wrap=True)
                    for table in tables(found, watched.texts, watched.unread, sort, kind, limit):
                        console.out().print(table)
                if once:
                    return
        _live(watched, every_s, sort, kind, limit)


class _Watched:
    """A broker, looked at again and again. texts: of queries, by entity id. unread: the partitions with
    records that were not read yet, by stream or table. memory: the worker's, as ``GET /status`` tells it.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before = client.entities()
        self._began_s = time.monotonic()
        self.texts = self._texts()
        self.unread: Mapping[str, Sequence[int]] = {}
        self.memory: Mapping[str, Any] = {}

    def _texts(self) -> dict[str, str]:
        return {f"query/{one.query_id}": " ".join((one.sql or "").split()) for one in self._client.queries()}

    def next(self, every_s: float) -> Uses:
        """What was used until so many seconds after the last look."""
        time.sleep(max(0.0, self._began_s + every_s - time.monotonic()))
        now, at_s = self._client.entities(), time.monotonic()
        self.memory = self._client.service()["memory"]
        found = uses(self._before, now, at_s - self._began_s)
        if any(one.kind == "query" and one.id not in self.texts for one in found.found):
            self.texts = self._texts()
        self._before, self._began_s = now, at_s
        self.unread = {one.name: of for one in self._client.sources() if (of := one.facts.get("lagging"))}
        return found


def _live(watched: _Watched, every_s: float, sort: Sort, kind: str | None, limit: int) -> None:
    from rich.console import Group
    from rich.live import Live

    out = console.out()
    with Live(console=out, auto_refresh=False, screen=out.is_terminal) as view:
        try:
            while True:
                found = watched.next(every_s)
                shown = tables(found, watched.texts, watched.unread, sort, kind, limit)
                view.update(Group(f"memory: {memory_line(watched.memory)}", *shown), refresh=True)
        except KeyboardInterrupt:
            return


def as_json_value(
    found: Uses, unread: Mapping[str, Sequence[int]], sort: Sort, kind: str | None, limit: int
) -> dict[str, Any]:
    """An interval as JSON has it."""
    shown = [found.of_kind(kind)] if kind else [found.of_kind("query"), found.of_kind(None)]
    return {
        "seconds": round(found.seconds, 3),
        "cores": found.cores,
        "memory_bytes": found.memory_bytes,
        "unread_share": found.unread_share,
        "unread_partitions": unread,
        "entities": [one.as_dict() for of in shown for one in ordered(of, sort)[:limit]],
    }


def tables(
    found: Uses,
    texts: Mapping[str, str],
    unread: Mapping[str, Sequence[int]],
    sort: Sort,
    kind: str | None,
    limit: int,
) -> list[Table | str]:
    """An interval as people read it: queries, then what they share."""
    head = (
        f"{found.cores:.1%} of a core in {found.seconds:.1f} s, {size_of(found.memory_bytes)}, "
        f"{found.unread_share:.1%} of the time in what no query reads"
    )
    shown: list[Table | str] = [head]
    if unread:
        named = [f"{name}[{','.join(map(str, of))}]" for name, of in sorted(unread.items())[:UNREAD_NAMED]]
        more = f" and {len(unread) - UNREAD_NAMED:,} more" if len(unread) > UNREAD_NAMED else ""
        shown.append(f"records that are not read yet: {', '.join(named)}{more}")
    for title, of in (
        [(kind, found.of_kind(kind))]
        if kind
        else [("queries", found.of_kind("query")), ("shared by them", found.of_kind(None))]
    ):
        first = ordered(of, sort)[:limit]
        shown.append(_table(f"{title}: {len(first):,} of {len(of):,}, by {sort}", first, texts))
    return shown


def _table(title: str, found: list[Use], texts: Mapping[str, str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = ("cpu", "rows/s in", "out", "memory", "queued", "NOW behind", "shared by", "entity")
    rows = [_cells(one, texts.get(one.id)) for one in found]
    table = Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False)
    for place, name in enumerate(names[:-1]):  # a narrow terminal takes from the last one alone
        width = max(len(name), *(len(row[place]) for row in rows), 0)
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    table.add_column(names[-1])
    for *cells, last in rows:
        table.add_row(*cells, Text(last, no_wrap=True, overflow="ellipsis"))
    return table


def _cells(one: Use, text: str | None) -> tuple[str, ...]:
    name = one.id if text is None else f"{one.id.removeprefix('query/')}  {text[:TEXT_CHARACTERS]}"
    return (
        f"{one.cpu_share:.1%}",
        _count(one.rows_in_per_s),
        _count(one.rows_out_per_s),
        size_of(one.memory_bytes),
        _count(one.queued_rows),
        "-" if one.behind_ms is None else duration_of_ns(one.behind_ms * 1e6),
        "-" if one.queries is None else f"{one.queries:,}",
        cell(name),
    )


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
