"""The live view: rates, NOW and a few answers, drawn anew a few times a second."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from broker.demo.audience import Progress
from broker.demo.replay import DAY_MS, Replay
from tureen.console import cell, instant_of_ms
from tureen.snapshot import Snapshot

WATCHED_ROWS = 4


def live(
    replay: Replay,
    progress: Progress,
    matches: int,
    titles: Sequence[str],
    counts: Sequence[int],
    before: Sequence[int],
    watched: Snapshot | None,
    watched_title: str,
) -> RenderableType:
    """The whole screen. ``before``: the counts of the last drawing; what changed stands out."""
    answers = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    answers.add_column(overflow="ellipsis", no_wrap=True)
    answers.add_column(justify="right")
    for title, count, old in zip(titles, counts, before, strict=True):
        answers.add_row(title, Text(f"{count:,}", style="bold yellow" if count != old else "bold"))
    parts: list[RenderableType] = [
        _figures(replay, progress, matches),
        Panel(answers, title="answers", title_align="left", box=box.ROUNDED, border_style="dim"),
    ]
    if watched is not None:
        parts.append(
            Panel(rows(watched, WATCHED_ROWS), title=watched_title, title_align="left", border_style="dim")
        )
    return Group(*parts)


def _figures(replay: Replay, progress: Progress, matches: int) -> RenderableType:
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
    table.add_row("NOW", "-" if progress.now_ms is None else _minute(progress.now_ms), lag)
    if progress.late or progress.refused:
        table.add_row("", "", f"{progress.late:,} late, {progress.refused:,} refused")
    return Group(bar, table)


def _minute(ms: int) -> str:
    return instant_of_ms(ms - ms % 60_000)


def rows(snapshot: Snapshot, last: int) -> RenderableType:
    """The last rows of an answer."""
    part = snapshot.table.slice(max(0, snapshot.table.num_rows - last))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in part.column_names:
        table.add_column(name, justify="right" if name.endswith("delay") else "left", no_wrap=True)
    for row in part.to_pylist():
        table.add_row(*(Text(cell(value), style="dim" if value is None else "") for value in row.values()))
    return table
