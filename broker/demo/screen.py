"""The live view: rates, NOW, a few answers and the board, drawn anew a few times a second.

What does not fit onto the terminal at once comes in turn, a page every few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from rich import box
from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from broker.demo.audience import Progress
from broker.demo.board import Tile
from broker.demo.bursts import FACTOR, Bursts, paying
from broker.demo.replay import DAY_MS, Replay
from tureen.cells import cell
from tureen.console import instant_of_ms
from tureen.snapshot import Snapshot

WATCHED_ROWS = 4
TILE_ROWS = 10
PANEL_WIDTH = 58
"""So wide a panel is readable; two of them stand beside each other from twice that on."""
PAGE_S = 4.0
COLUMNS_HEIGHT = 4
EIGHTHS = " ▁▂▃▄▅▆▇█"


def live(
    console: Console,
    replay: Replay,
    progress: Progress,
    matches: int,
    panels: Sequence[RenderableType],
    elapsed_s: float,
    page: str,
) -> RenderableType:
    """The whole screen: figures, and below them the panels that have their turn. page: its address."""
    figures = _figures(replay, progress, matches, page)
    room = console.size.height - _height(console, figures, console.size.width) - 1
    pages = _pages(console, panels, room)
    return Group(figures, pages[int(elapsed_s / PAGE_S) % len(pages)])


def counts(titles: Sequence[str], now: Sequence[int], before: Sequence[int]) -> RenderableType:
    """Answers that are one number. ``before``: those of the last drawing; what changed stands out."""
    answers = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    answers.add_column(overflow="ellipsis", no_wrap=True)
    answers.add_column(justify="right")
    for title, count, old in zip(titles, now, before, strict=True):
        answers.add_row(title, Text(f"{count:,}", style="bold yellow" if count != old else "bold"))
    return _panel("answers", answers)


def watched(title: str, snapshot: Snapshot) -> RenderableType:
    """The last rows of an answer."""
    return _panel(title, rows(snapshot, WATCHED_ROWS))


def promising(title: str, snapshot: Snapshot) -> RenderableType:
    """The last rows of an answer, and whether these are all."""
    mark = Text(f"exact: all {len(snapshot):,} rows", style="green")
    if snapshot.approximate:
        share = "".join(
            f", about {1 - tag.fn:.0%}" for tag in snapshot.approximation[:1] if tag.fn is not None
        )
        mark = Text(f"approximate: {len(snapshot):,} rows{share}", style="yellow")
    return _panel(title, Group(mark, rows(snapshot, WATCHED_ROWS)))


def burst(bursts: Bursts) -> RenderableType:
    """Who pays for the last burst that is over, and who paid before it."""
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
    for title, found in (("burst", bursts.burst), ("before", bursts.calm)):
        if found is not None:
            table.add_row(Text(f"{found.cores:.0%}", style="bold"), Text(f"of a core: {title}", style="bold"))
            for one in paying(found)[:3]:
                table.add_row(f"{one.cpu_share:.1%}", Text(cell(bursts.texts.get(one.id, one.id))))
    title = f"a burst, {FACTOR:g} times as fast" if bursts.is_on else "who paid for the burst"
    return _panel(title, table)


def tile(one: Tile, snapshot: Snapshot) -> RenderableType:
    """An answer of the board."""
    drawn = {"bars": _bars, "columns": _columns, "table": _first_rows}[one.drawn or "table"]
    return _panel(one.title, drawn(snapshot))


def _panel(title: str, content: RenderableType) -> RenderableType:
    return Panel(content, title=Text(title), title_align="left", box=box.ROUNDED, border_style="dim")


def _pages(console: Console, panels: Sequence[RenderableType], room: int) -> list[RenderableType]:
    """Panels side by side where the terminal is wide, as many below each other as fit."""
    across = 2 if console.size.width >= 2 * PANEL_WIDTH else 1
    width = console.size.width // across
    pages: list[list[tuple[RenderableType, ...]]] = [[]]
    left = room
    for place in range(0, len(panels), across):
        line = tuple(panels[place : place + across])
        height = max(_height(console, panel, width) for panel in line)
        if height > left and pages[-1]:
            pages.append([])
            left = room
        pages[-1].append(line)
        left -= height
    return [Group(*(_beside(line, across) for line in page)) for page in pages]


def _beside(line: Sequence[RenderableType], across: int) -> RenderableType:
    grid = Table.grid(expand=True)
    for _ in range(across):
        grid.add_column(ratio=1)
    grid.add_row(*line)
    return grid


def _height(console: Console, content: RenderableType, width: int) -> int:
    return len(console.render_lines(content, console.options.update(width=width), pad=False))


def _bars(snapshot: Snapshot) -> RenderableType:
    """A line a row: the first column's value, the second's as a bar."""
    names, values = (column.to_pylist() for column in snapshot.table.columns[:2])
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column(ratio=1)
    for name, value in list(zip(names, values, strict=True))[:TILE_ROWS]:
        table.add_row(cell(name), f"{value:,}", Bar(max(values) or 1, 0, value, color="cyan"))
    return table


def _columns(snapshot: Snapshot) -> RenderableType:
    """The second column's values as columns beside each other, the first and the last one named."""
    names, values = (column.to_pylist() for column in snapshot.table.columns[:2])
    if not values:
        return Text("nothing yet", style="dim")
    width = 3 if len(values) <= 16 else 2
    eighths = [round(value / (max(values) or 1) * COLUMNS_HEIGHT * 8) for value in values]
    lines = [
        "".join(EIGHTHS[min(8, max(0, one - level * 8))] * (width - 1) + " " for one in eighths)
        for level in reversed(range(COLUMNS_HEIGHT))
    ]
    return Group(
        Text("\n".join(lines), style="cyan", no_wrap=True),
        Text(f"{cell(names[0])} to {cell(names[-1])}, {min(values):,} to {max(values):,}", style="dim"),
    )


def _first_rows(snapshot: Snapshot) -> RenderableType:
    return _table(snapshot.table.slice(0, TILE_ROWS))


def _figures(replay: Replay, progress: Progress, matches: int, page: str) -> RenderableType:
    sent = sum(replay.sent.values())
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(
        Text("Tureen", style="bold"),
        Text(_minute(replay.event_ms) + " UTC", style="bold"),
        ProgressBar(total=replay.total, completed=sent, width=30),
        f"{sent / max(1, replay.total):.0%}",
    )
    lag = "-"
    if progress.now_ms is not None:
        behind_ms = max(0, replay.event_ms - progress.now_ms)
        lag = f"{behind_ms / 3_600_000:.0f} hours behind the newest departure"
        if replay.days_per_s is not None:
            lag += f", {behind_ms / DAY_MS / replay.days_per_s:.1f} s on the clock"
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("records", f"{progress.records:,}", f"{progress.per_s:,.0f} a second")
    table.add_row("queries", f"{progress.queries:,}", f"{matches:,} rows seen in their answers")
    table.add_row("changes", f"{progress.deltas:,}", f"{progress.deltas_per_s:,.0f} a second, followed")
    table.add_row("NOW", "-" if progress.now_ms is None else _minute(progress.now_ms), lag)
    if progress.late or progress.refused:
        table.add_row("", "", f"{progress.late:,} late, {progress.refused:,} refused")
    table.add_row("the page", Text(page, style="bold cyan", no_wrap=True), "")
    return Group(bar, table)


def _minute(ms: int) -> str:
    return instant_of_ms(ms - ms % 60_000)


def rows(snapshot: Snapshot, last: int) -> RenderableType:
    """The last rows of an answer."""
    return _table(snapshot.table.slice(max(0, snapshot.table.num_rows - last)))


def _table(part: pa.Table) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for field in part.schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if numeric else "left", no_wrap=True)
    for row in part.to_pylist():
        table.add_row(*(Text(_value(value), style="dim" if value is None else "") for value in row.values()))
    return table


def _value(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else cell(value)
