"""Registrations over which a worker ended: they are tried once more, alone, then refused.

A registration whose condition or function does not end would kill the worker again after each restart, since
the registry says it again. So what a shard is at work on is noted in a file of the shard's before, and when
it starts, what it finds there was at work as the last worker died. A worker that stops as asked leaves
nothing.

Being at work is not enough to be blamed: the supervisor has noted how the worker ended
(:mod:`broker.runtime.lives`). A registration is the cause only where the worker ended by itself, where the
shard's thread hung at the work of registrations, or where memory ran out that was not short before that work
began. Who kills the process from outside, with or without its supervisor, blames nobody.

What is refused stays so until the query is unregistered, or gets another text.

A change is a write of the file, which is small: some tenths of a millisecond. Used by the shard's thread
alone.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

from broker.runtime import lives
from broker.runtime.lives import LifeEnd
from broker.shard.doing import is_of_registrations
from broker.shard.shard_command import ShardCommand
from tureen.errors import RegistrationEndsWorker

TRIED_MAX = 2
"""A registration that was at work when so many workers died is refused."""


class Trials:
    """Notes in a file what one shard is at work on, and counts the workers that died over a registration."""

    def __init__(self, path: Path, shard: int, is_short: Callable[[], bool] = lambda: False) -> None:
        """Read what the worker before left. path: in a folder of the data directory. is_short: whether memory
        is short.
        """
        self._path = path
        self._is_short = is_short
        self._short: set[str] = set()
        """Those at work which began while memory was short."""
        self._at_work: dict[str, str] = {}
        """Registrations by query id."""
        self._ends: dict[str, dict[str, int]] = {}
        """By query id and digest of a registration: how many workers died over it."""
        with contextlib.suppress(OSError, ValueError, KeyError):  # none, or cut off: nothing is known
            noted, noted_s = json.loads(path.read_bytes()), path.stat().st_mtime
            self._ends = noted["ends"]
            ended = lives.since(path.parent.parent, noted_s)
            for name, what in noted["at_work"].items():
                if any(may_blame(end, shard, name in noted.get("short", ())) for end in ended):
                    self._ends[name] = {what: self._ends.get(name, {}).get(what, 0) + 1}
            self._note()

    def ends_of(self, command: ShardCommand) -> int:
        """How many workers died while a registration was at work."""
        return self._ends.get(command.name, {}).get(_digest(command), 0)

    def refusal(self, command: ShardCommand) -> RegistrationEndsWorker | None:
        """Why a registration is not tried again; None: it is."""
        ends = self.ends_of(command)
        return None if ends < TRIED_MAX else RegistrationEndsWorker(command.name, ends)

    def knows(self, name: str) -> bool:
        """Whether a worker died over a query, or is at work on it."""
        return name in self._ends or name in self._at_work

    def is_at_work(self, command: ShardCommand) -> bool:
        """Whether a registration is noted as being carried out."""
        return self._at_work.get(command.name) == _digest(command)

    def begin(self, commands: Iterable[ShardCommand]) -> None:
        """About to work on registrations."""
        coming = {one.name: _digest(one) for one in commands}
        if coming:
            if self._is_short():
                self._short.update(coming.keys() - self._at_work.keys())
            self._at_work |= coming
            self._note()

    def rest(self, names: Iterable[str]) -> None:
        """Nothing is done for them at present: if a worker dies now it is not over them."""
        known = [name for name in names if self._at_work.pop(name, None) is not None]
        if known:
            self._note()

    def over(self, names: Iterable[str]) -> None:
        """They have come, are refused or given up: they end no worker."""
        known = [name for name in names if self.knows(name)]
        for name in known:
            self._at_work.pop(name, None)
            self._ends.pop(name, None)
        if known:
            self._note()

    def stop(self) -> None:
        """The worker stops as asked."""
        if self._at_work:
            self._at_work.clear()
            self._note()

    def _note(self) -> None:
        """Write it down; a disk that takes nothing is passed over."""
        with contextlib.suppress(OSError):
            if not self._at_work and not self._ends:
                self._path.unlink(missing_ok=True)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_suffix(".tmp")
            self._short.intersection_update(self._at_work)
            told = {"at_work": self._at_work, "ends": self._ends, "short": sorted(self._short)}
            beside.write_text(json.dumps(told))
            beside.replace(self._path)


def may_blame(end: LifeEnd, shard: int, was_short: bool) -> bool:
    """Whether a registration that was at work on a shard can be why the worker ended. was_short: memory was
    short before it began.
    """
    if end.cause == "memory":
        return not was_short
    if end.cause == f"shard-{shard}":
        return is_of_registrations(end.at)
    return end.cause in ("crash", "worker")


def _digest(command: ShardCommand) -> str:
    """Equal for equal texts and parameters; nothing of the text is told by it."""
    return blake2b(command.said.encode(), digest_size=8).hexdigest()
