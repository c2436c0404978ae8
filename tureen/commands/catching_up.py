"""Wait until the sources of a query have what their topics held: progress on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from tureen import console
from tureen.catching_up import CatchingUp
from tureen.client import Query

LOOK_S = 0.1
LINE_S = 2.0
"""Elsewhere than on a terminal, a line is written so often at most."""
FOR_NOW_S = 45.0
"""How long rows are waited for that were read and that NOW alone keeps back: longer than the usual idle
timeout.
"""


class Shows(Protocol):
    """Shows how far sources are."""

    def __call__(self, behind: Sequence[CatchingUp]) -> None: ...


def wait(query: Query) -> None:
    """Return once an answer lacks nothing that was there, or what it lacks does not come: its source reads
    no more, or NOW keeps it back for long. What is left the answer says. Ctrl-C ends the wait as any.
    """
    behind = _left(query)
    if not behind:
        return
    with _shown() as show:
        read_s = time.monotonic()
        while behind:
            show(behind)
            time.sleep(LOOK_S)
            if not all(one.is_read for one in behind):
                read_s = time.monotonic()
            elif time.monotonic() - read_s > FOR_NOW_S:
                return
            behind = _left(query)


def _left(query: Query) -> list[CatchingUp]:
    """The sources that go on catching up."""
    return [one for one in query.status().catching_up if not one.lost]


@contextlib.contextmanager
def _shown() -> Iterator[Shows]:
    err = console.err()
    if not err.is_terminal:
        yield _Lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(TextColumn("{task.description}"), BarColumn(), console=err, transient=True) as progress:
        tasks = {}

        def show(behind: Sequence[CatchingUp]) -> None:
            for one in behind:
                if one.source not in tasks:
                    tasks[one.source] = progress.add_task("", total=None)
                progress.update(tasks[one.source], description=str(one), completed=one.read, total=one.of)
            for name in tasks.keys() - {one.source for one in behind}:
                progress.update(tasks[name], visible=False)

        yield show


class _Lines:
    """A line where something moved, now and then."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._said_s = -LINE_S

    def __call__(self, behind: Sequence[CatchingUp]) -> None:
        if time.monotonic() - self._said_s < LINE_S:
            return
        for one in behind:
            if self._said.get(one.source) != str(one):
                self._said[one.source] = str(one)
                self._said_s = time.monotonic()
                console.err().print(f"{one} (--no-wait answers at once)", style="dim", markup=False)
