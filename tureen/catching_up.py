"""Sources that have not yet what their topics held when their reading began, as the broker tells of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


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
