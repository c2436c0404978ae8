"""Records of one poll, or a part of it, on their way into a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from engine.model.step import Records
from topics.consumer import Range


class Promise(NamedTuple):
    """A heartbeat that came as a record, which is ``place`` of the messages: no row of its partition below ms
    follows.
    """

    place: int
    partition: int
    ms: int


@dataclass(frozen=True, slots=True)
class TakenRows:
    """The rows, what gave none, and what each row was before.

    messages: the records as they were read. rows: for each row of the body its place among them.
    bad: (place among the messages, reason). size: bytes. ranges: for the journal. promises: heartbeats, which
    count behind all the rows.
    """

    body: Records
    messages: list[Any]
    rows: np.ndarray[Any, Any]
    bad: list[tuple[int, str]]
    size: int
    ranges: tuple[Range, ...]
    promises: tuple[Promise, ...] = ()

    @property
    def count(self) -> int:
        """Number of all records, with those that were shed unread."""
        shed = self.body.shed
        return len(self.messages) + (0 if shed is None else shed.unread)
