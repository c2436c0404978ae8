"""A change feed as it travels: bytes to lines, lines to events.

Only what is whole comes out. A line without its end waits for the rest; so does a batch in several lines, all
of which but the last say ``more``. Whatever is not whole when a connection breaks is dropped with its
:class:`Reader`'s :meth:`~Reader.restart`, and comes again from the position before it.

Cost: O(bytes); memory that of one batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from tureen.approximation import approximations_of
from tureen.catching_up import catching_up_of
from tureen.changes import Change, ChangesEvent, Operator, ProgressEvent, SnapshotEvent
from tureen.columns import Column, columns_of, rows_of
from tureen.errors import BrokerUnavailable, LimitExceeded, TureenError
from tureen.facts import error_from

LINE_BYTES_MAX = 256 * 1024 * 1024
"""A broker cuts far earlier; more is no feed."""


@dataclass(frozen=True, slots=True)
class FeedEnded:
    """A feed ended by itself: why, and where it is to go on."""

    reason: str
    position: str | None
    error: TureenError | None


Told = SnapshotEvent | ChangesEvent | ProgressEvent | FeedEnded


class Lines:
    """Lines of a byte stream, whatever pieces it comes in.

    >>> lines = Lines()
    >>> lines.feed(b'{"a": 1}'), lines.feed(b'\\n\\n{"b"'), lines.feed(b': 2}\\n')
    ([], [b'{"a": 1}'], [b'{"b": 2}'])
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes end, without blank ones. Raises LimitExceeded for an endless one."""
        *ended, rest = data.split(b"\n")
        found = []
        for line in ended:
            whole = b"".join([*self._begun, line]) if self._begun else line
            self._begun, self._size = [], 0
            if whole.strip():
                found.append(whole)
        if rest:
            self._begun.append(rest)
            self._size += len(rest)
            if self._size > LINE_BYTES_MAX:
                raise LimitExceeded("a line of a change feed", LINE_BYTES_MAX, self._size)
        return found


class Reader:
    """Events of the messages of a feed, over one connection after another.

    columns and operator are told once a connection, and kept for the lines that do not tell them.
    """

    def __init__(self) -> None:
        self.columns: tuple[Column, ...] | None = None
        self.operator: Operator = "changes"
        self._lines = Lines()
        self._pieces: list[Mapping[str, Any]] = []

    def restart(self) -> None:
        """A new connection: what is not whole yet comes again."""
        self._lines = Lines()
        self._pieces = []

    def feed(self, data: bytes) -> list[Told]:
        """What these bytes complete. Raises BrokerUnavailable for what no broker says."""
        return [told for line in self._lines.feed(data) if (told := self._message(_object(line))) is not None]

    def answer(self, data: bytes) -> list[Told]:
        """What the answer of a long poll tells: a snapshot, changes or none, then maybe an end."""
        message = _object(data)
        kind = "snapshot" if "rows" in message else "changes" if message.get("changes") else "progress"
        found = [self._message({**message, "type": kind, "more": False})]
        if message.get("end"):
            found.append(
                self._message({"position": message.get("position"), **message["end"], "type": "end"})
            )
        return [told for told in found if told is not None]

    def _message(self, message: Mapping[str, Any]) -> Told | None:
        """What a message completes; None for a piece, and for kinds that this client does not know."""
        try:
            return self._read(message)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _broken() from None

    def _read(self, message: Mapping[str, Any]) -> Told | None:
        kind = message["type"]
        if self._pieces and self._pieces[0]["type"] != kind:
            raise _broken()
        if message.get("columns") is not None:
            self.columns = columns_of(message["columns"])
        self.operator = message.get("operator") or self.operator
        if message.get("more"):
            self._pieces.append(message)
            return None
        pieces, self._pieces = [*self._pieces, message], []
        if kind == "end":
            error = message.get("error")
            return FeedEnded(
                str(message.get("reason")), message.get("position"), error_from(error) if error else None
            )
        if kind == "progress":
            tags = approximations_of(message.get("approximation"))
            return ProgressEvent(str(message["position"]), message.get("now_ms"), tags)
        if kind == "snapshot":
            return self._snapshot(pieces)
        return self._changes(pieces) if kind == "changes" else None

    def _snapshot(self, pieces: list[Mapping[str, Any]]) -> SnapshotEvent:
        columns, last = self._known(), pieces[-1]
        rows = [row for piece in pieces for row in rows_of(columns, piece["rows"])]
        complete_from = next(
            (at for piece in pieces if (at := piece.get("complete_from_ms")) is not None), None
        )
        return SnapshotEvent(
            str(last["position"]),
            last.get("now_ms"),
            columns,
            tuple(rows),
            self.operator,
            complete_from_ms=complete_from,
            approximation=approximations_of(pieces[0].get("approximation")),
            catching_up=catching_up_of(pieces[0].get("catching_up")),
            errors=int(pieces[0].get("errors") or 0),
            condition_errors=int(pieces[0].get("condition_errors") or 0),
        )

    def _changes(self, pieces: list[Mapping[str, Any]]) -> ChangesEvent:
        columns, last = self._known(), pieces[-1]
        told = [change for piece in pieces for change in piece["changes"]]
        rows = rows_of(columns, [row for _, _, row in told])
        changes = tuple(
            Change(int(weight), int(at_ms), row) for (weight, at_ms, _), row in zip(told, rows, strict=True)
        )
        tags = approximations_of(last.get("approximation"))
        return ChangesEvent(str(last["position"]), last.get("now_ms"), columns, changes, self.operator, tags)

    def _known(self) -> tuple[Column, ...]:
        if self.columns is None:
            raise BrokerUnavailable("rows came before their columns", hint=_HINT)
        return self.columns


_HINT = "is a Tureen broker of this client's version running there?"


def _broken() -> BrokerUnavailable:
    return BrokerUnavailable("this is not a line of a change feed", hint=_HINT)


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        raise _broken() from None
    if not isinstance(message, dict):
        raise _broken()
    return cast("Mapping[str, Any]", message)
