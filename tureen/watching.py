"""The changes of a query as a terminal shows them: a table that lives, lines, or JSON.

On a terminal the answer stands there and changes: rows that came last are marked with +, those that went
stand below it with -. Elsewhere each change is a line of its own, so that it can be piped; with JSON each
event is one.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from tureen import cells, console, remarks
from tureen.changes import AwayEvent, ChangesEvent, EndEvent, Event, SnapshotEvent
from tureen.columns import Row
from tureen.folding import Fold

if TYPE_CHECKING:
    from rich.console import RenderableType

WENT_SHOWN = 5
DRAWN_PER_S = 8

_RIGHT = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")


def show(
    events: Iterable[Event], *, rows: int, as_json: bool, stands: bool, folded: bool = True
) -> EndEvent | None:
    """Show events until they end, or Ctrl-C; how they ended, None for Ctrl-C.

    rows: of a table, at most. stands: the query is there afterwards, to be gone on with. folded: events begin
    with the answer, so that a table can be shown.
    """
    board = Board(rows) if folded and not as_json and sys.stdout.isatty() else None
    position: str | None = None
    try:
        if board is None:
            for event in events:
                position = event.position or position
                show_event(event, as_json)
                if isinstance(event, EndEvent):
                    return event
            return None
        from rich.live import Live

        with Live(board, console=console.out(), refresh_per_second=DRAWN_PER_S):
            for event in events:
                board.apply(event)
                position = event.position or position
                if isinstance(event, EndEvent):
                    return event
        return None
    except KeyboardInterrupt:
        return None
    finally:
        if stands and not as_json and position is not None:
            console.err().print(f"continue from here: --since {position}", style="dim")


def show_event(event: Event, as_json: bool) -> None:
    """One event as lines: a row that is there with =, one that came with +, one that went with -."""
    if as_json:
        console.show_json(event.as_dict())
    elif isinstance(event, SnapshotEvent):
        if event.reset:
            console.err().print("changes were missed; here is the answer again", style="yellow")
        if event.columns:  # of a result topic they are unknown while it holds no row
            click.echo("\t".join(("", "at", *(column.name for column in event.columns))))
        for row in event.rows:
            click.echo("\t".join(("=", "", *map(cells.cell, row))))
        remarks.show_remarks(event)
    elif isinstance(event, ChangesEvent):
        for change in event:
            sign = "+" if change.weight > 0 else "-"
            at = console.instant_of_ms(change.at_ms)
            click.echo("\t".join((sign, at, *map(cells.cell, change.row))))
    elif isinstance(event, AwayEvent):
        console.err().print(f"{event.error.message}; waiting", style="yellow", markup=False)
    elif isinstance(event, EndEvent) and event.reason != "caught_up":
        console.err().print(f"the query is {event.reason}", style="yellow")


class Board:
    """The answer as it stands, drawn whenever rich asks; events come from another thread."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._fold = Fold()
        self._came: Counter[Row] = Counter()
        self._went: list[Row] = []
        self._told = ""
        self._drawn = False
        self._lock = threading.Lock()

    def apply(self, event: Event) -> None:
        """Take in the next event. Raises as :meth:`tureen.folding.Fold.apply`."""
        with self._lock:
            self._fold.apply(event)
            self._told = ""
            if isinstance(event, SnapshotEvent):
                self._came, self._went = Counter(), []
                self._told = "changes were missed; this is the answer again" if event.reset else ""
            elif isinstance(event, ChangesEvent):
                self._mark(event)
            elif isinstance(event, AwayEvent):
                self._told = f"{event.error.message}; waiting"
            elif isinstance(event, EndEvent) and event.reason != "caught_up":
                self._told = f"the query is {event.reason}"

    def _mark(self, event: ChangesEvent) -> None:
        """Marks are those of the last changes, and of all since the last drawing."""
        if self._drawn:
            self._came, self._went, self._drawn = Counter(), [], False
        for weight, _, row in event.changes:
            if weight > 0:
                self._came[row] += 1
            elif self._came[row]:
                self._came[row] -= 1
            else:
                self._went.append(row)

    def __rich__(self) -> RenderableType:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            fold, self._drawn = self._fold, True
            table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
            table.add_column("")
            for column in fold.columns:
                right = column.type.startswith(_RIGHT)
                table.add_column(Text(cells.cell(column.name)), justify="right" if right else "left")
            for row in fold.rows()[-self._rows :]:
                came = self._came[row] > 0
                table.add_row("+" if came else "", *_cells(row), style="green" if came else None)
            for row in self._went[-WENT_SHOWN:]:
                table.add_row("-", *_cells(row), style="red strike")
            count = f"{len(fold):,} row{'' if len(fold) == 1 else 's'}"
            if len(fold) > self._rows:
                count += f", the last {self._rows:,} shown"
            if fold.position is None:
                told = self._told or "waiting for the first answer"
                return Text(told, style="dim")
            now = "nothing has come in yet" if fold.now_ms is None else _now(fold.now_ms)
            told = f"\n{self._told}" if self._told else ""
            return Group(table, Text(f"{count}, {now}{told}", style="dim"))


def _now(ms: int) -> str:
    return f"NOW {console.instant_of_ms(ms)} UTC"


def _cells(row: Row) -> list[Any]:
    from rich.text import Text

    return [Text(cells.cell(value)) for value in row]
