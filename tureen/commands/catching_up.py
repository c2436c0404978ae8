"""Wait until sources have what their topics held, or what was written, and show how far they are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tureen import console
from tureen.catching_up import FOR_NOW_SHOWN_S, CatchingUp, CatchUpWait
from tureen.client import Client, Query

LOOK_S = 0.1
LINE_S = 2.0
"""Elsewhere than on a terminal, a line is written so often at most."""


class Shows(Protocol):
    """Shows how far sources are."""

    def __call__(self, behind: Sequence[CatchingUp]) -> None: ...


def wait(query: Query) -> None:
    """Return once an answer lacks nothing that was there, or what it lacks does not come: its source reads
    no more, or NOW keeps it back for long. What is left the answer says. Ctrl-C ends the wait as any.
    """
    _wait(lambda: query.status().catching_up)


def wait_for_written(client: Client, written: Iterable[Mapping[str, Any]]) -> None:
    """Return once rows that INSERT wrote are in answers, or NOW keeps them back for long. written: what the
    broker answered.
    """
    ends: dict[str, dict[int, int]] = {}
    for facts in written:
        of = ends.setdefault(str(facts["name"]), {})
        for one in facts["records"]:
            of[one["partition"]] = max(of.get(one["partition"], 0), one["offset"] + 1)
    if ends:
        _wait(lambda: _unread(client, ends))


def _unread(client: Client, ends: Mapping[str, Mapping[int, int]]) -> list[CatchingUp]:
    """The sources that have not read up to where rows were written, or whose rows wait for NOW."""
    found = []
    for source in client.sources():
        wanted = ends.get(source.name)
        if wanted is None or source.facts.get("state") != "RUNNING":
            continue
        read_to = {int(number): at for number, at in (source.facts.get("next_offsets") or {}).items()}
        left = sum(max(0, end - read_to.get(number, 0)) for number, end in wanted.items())
        passed = any(at > wanted.get(number, at) for number, at in read_to.items())
        if left or (source.pending and not passed):
            of = sum(wanted.values())
            found.append(CatchingUp(source.name, of - left, of, source.pending or 0))
    return found


def _wait(behind_now: Callable[[], Sequence[CatchingUp]]) -> None:
    waiting = CatchUpWait(FOR_NOW_SHOWN_S, time.monotonic())
    behind = behind_now()
    if waiting.is_over(behind, time.monotonic()):
        return
    with _shown() as show:
        while not waiting.is_over(behind, time.monotonic()):
            show([one for one in behind if not one.lost])
            time.sleep(LOOK_S)
            behind = behind_now()


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
