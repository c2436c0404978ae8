"""A course of changes and how a broker tells it, cut into lines, pieces and bytes as a test likes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tureen.changes import Change, ChangesEvent, Event, ProgressEvent, SnapshotEvent
from tureen.columns import Column

COLUMNS = (Column("city", "STRING"), Column("price", "DOUBLE"))
TOLD = [{"name": column.name, "type": column.type} for column in COLUMNS]
ADDRESS = "http://broker:1"

Told = tuple[int, int, str, float]
"""A change: weight, instant, city, price."""


@dataclass
class Course:
    """A query's answer at the beginning, and its changes step by step.

    Position i is behind i steps. pieces: rows and changes a line. kept_from: changes before it are forgotten.
    end: the last line of a feed that has told everything.
    """

    rows: list[tuple[str, float]] = field(default_factory=list)
    steps: list[list[Told]] = field(default_factory=list)
    pieces: int = 2
    kept_from: int = 0
    end: dict[str, Any] | None = None

    def answer(self, position: int) -> list[tuple[str, float]]:
        """The rows then; zeros have signs."""
        found = list(self.rows)
        for step in self.steps[:position]:
            for weight, _, *row in step:
                if weight > 0:
                    found.append((row[0], row[1]))
                else:
                    found.pop(list(map(repr, found)).index(repr((row[0], row[1]))))
        return found

    def messages(self, since: str | None, until: int | None = None) -> list[dict[str, Any]]:
        """What a connection is told, until this position where one is given."""
        last = len(self.steps) if until is None else until
        first = len(self.steps) if since is None else int(since)
        found: list[dict[str, Any]] = []
        if since is None:
            first = 0 if until is None and not self.kept_from else last
            rows = [list(row) for row in self.answer(first)]
            head = {"columns": TOLD, "operator": "changes", "complete_from_ms": None}
            found += self._cut("snapshot", "rows", rows, first, head)
        else:
            progress = {"type": "progress", "position": since, "now_ms": first}
            found.append({**progress, "columns": TOLD, "operator": "changes"})
        for number in range(first, last):
            told = [[weight, at, list(row)] for weight, at, *row in self.steps[number]]
            if told:
                found += self._cut("changes", "changes", told, number + 1, {})
            else:
                found.append({"type": "progress", "position": str(number + 1), "now_ms": number + 1})
        if self.end is not None:
            found.append({"type": "end", "position": str(last), **self.end})
        return found

    def _cut(
        self, kind: str, name: str, items: list[Any], position: int, head: dict[str, Any]
    ) -> list[dict[str, Any]]:
        parts = [items[i : i + self.pieces] for i in range(0, len(items), self.pieces)] or [[]]
        found = [{"type": kind, name: part, "more": True, **head} for part in parts]
        found[-1] |= {"more": False, "position": str(position), "now_ms": position}
        return found

    def feed(self, since: str | None) -> bytes:
        return b"".join(json.dumps(message).encode() + b"\n" for message in self.messages(since))

    def poll(self, since: str | None) -> bytes:
        """One step more, or the answer of the beginning."""
        if since is None:
            (told,) = (one for one in self._whole().messages(None, 0))
            return json.dumps(told).encode()
        here = int(since)
        if here == len(self.steps):
            return json.dumps(
                {"position": since, "now_ms": here, "changes": [], "end": self.end, "columns": TOLD}
            ).encode()
        told = [[weight, at, list(row)] for weight, at, *row in self.steps[here]]
        body = {"position": str(here + 1), "now_ms": here + 1, "changes": told, "end": None, "columns": TOLD}
        return json.dumps(body).encode()

    def _whole(self) -> Course:
        return Course(self.rows, self.steps, max(1, len(self.rows)))

    def events(self, since: int | None = None) -> list[Event]:
        """What a client is to be told: each step once, in order."""
        found: list[Event] = []
        if since is None:
            found.append(SnapshotEvent("0", 0, COLUMNS, tuple(self.rows)))
        for number in range(since or 0, len(self.steps)):
            changes = tuple(Change(weight, at, tuple(row)) for weight, at, *row in self.steps[number])
            found.append(
                ChangesEvent(str(number + 1), number + 1, COLUMNS, changes)
                if changes
                else ProgressEvent(str(number + 1), number + 1)
            )
        return found


def reply(status: int, message: Any = None) -> httpx.Response:
    return httpx.Response(status, json=message, request=httpx.Request("GET", f"{ADDRESS}/queries/x/changes"))


def in_chunks(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The bytes, cut at these places."""
    places = sorted({0, len(data), *(cut for cut in cuts if 0 < cut < len(data))})
    return [data[a:b] for a, b in itertools.pairwise(places)]
