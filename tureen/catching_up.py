"""Sources that have not yet what their topics held when their reading began: as the broker tells of them, and
for how long an answer waits for them, at each door.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

FOR_NOW_S = 2.0
"""How long rows are waited for that were read and that NOW alone keeps back, where whoever waits is not shown
what for.
"""
FOR_NOW_SHOWN_S = 45.0
"""How long where that is shown and can be ended at any time: longer than the usual idle timeout."""


@dataclass(frozen=True, slots=True)
class CatchingUp:
    """One source: an answer over it lacks what is not read, and rows above NOW.

    read, of: records of its topic, as offsets count them; of: None while Kafka has not told. waiting: rows
    that were read and enter when NOW has come to them, at the latest after the idle timeout of their stream.
    lost: it reads no more, since its topic, or records of it, are gone.
    """

    source: str
    read: int
    of: int | None
    waiting: int = 0
    lost: bool = False

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> CatchingUp:
        of = message.get("of")
        return cls(
            source=str(message.get("source", "")),
            read=int(message.get("read") or 0),
            of=None if of is None else int(of),
            waiting=int(message.get("waiting") or 0),
            lost=bool(message.get("lost", False)),
        )

    @property
    def is_read(self) -> bool:
        """Whether all is read, and rows wait for NOW alone."""
        return self.of is not None and self.read >= self.of

    def __str__(self) -> str:
        """One line.

        >>> print(CatchingUp("ticks", 50_000, 200_000))
        ticks is catching up: 50,000 of 200,000 records read
        >>> print(CatchingUp("ticks", 9, 9, waiting=1))
        ticks is catching up: all 9 records read, 1 row waits for NOW
        >>> print(CatchingUp("ticks", 5, 9, lost=True))
        ticks reads no more: 5 of 9 records were read
        """
        if self.of is None:
            return f"{self.source} is catching up: Kafka has not told yet what its topic holds"
        if self.lost:
            return f"{self.source} reads no more: {self.read:,} of {self.of:,} records were read"
        if not self.is_read:
            return f"{self.source} is catching up: {self.read:,} of {self.of:,} records read"
        rows = "1 row waits" if self.waiting == 1 else f"{self.waiting:,} rows wait"
        return f"{self.source} is catching up: all {self.of:,} records read, {rows} for NOW"


def catching_up_of(messages: Iterable[Mapping[str, Any]] | None) -> tuple[CatchingUp, ...]:
    """Read the sources that are catching up from a list of messages."""
    return tuple(CatchingUp.of_message(one) for one in messages or () if "source" in one)


def catching_up_from(text: bytes | str | None) -> tuple[CatchingUp, ...]:
    """Read the sources that are catching up from a header or the metadata of a schema; none where nothing is
    said.
    """
    return catching_up_of(json.loads(text)) if text else ()


class Source(Protocol):
    """A source that is behind, as a client or a shard has it."""

    @property
    def lost(self) -> bool:
        """Whether it reads no more."""

    @property
    def is_read(self) -> bool:
        """Whether all is read, and rows wait for NOW alone."""


class CatchUpWait:
    """Decides when an answer is given though sources are behind.

    What is not read yet is waited for; a source that reads no more is not. Once all is read, and NOW keeps
    rows back, they are waited for ``for_now_s``: NOW may not come to them before other records do.

    >>> wait = CatchUpWait(2.0, now_s=0.0)
    >>> unread, waits = CatchingUp("s", 1, 3), CatchingUp("s", 3, 3, waiting=1)
    >>> [wait.is_over([one], at_s) for at_s, one in enumerate([unread, unread, waits, waits, waits, waits])]
    [False, False, False, False, True, True]
    >>> wait.is_over([], 9.0), wait.is_over([CatchingUp("s", 1, 3, lost=True)], 9.0)
    (True, True)
    """

    def __init__(self, for_now_s: float, now_s: float) -> None:
        """now_s: of a clock that never goes back."""
        self._for_now_s = for_now_s
        self._read_s = now_s

    def is_over(self, behind: Iterable[Source], now_s: float) -> bool:
        """Whether it is given now. behind: the sources that are."""
        coming = [one for one in behind if not one.lost]
        if not all(one.is_read for one in coming):
            self._read_s = now_s
        return not coming or now_s - self._read_s > self._for_now_s
