"""Sends what a statement gave: rows a part at a time, lines of COPY, tags and notices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NoReturn, Protocol

import pyarrow as pa

from broker.node.request_work import RequestWork
from broker.postgres import messages, results
from broker.postgres.errors import notice_of
from broker.postgres.messages import Field, ProtocolViolation
from broker.postgres.plans import Copied, CopyOptions
from broker.postgres.results import PART_ROWS, Result, Rows

FEW_ROWS = 256
"""So many rows are written on the event loop; more by a thread."""


class Out(Protocol):
    """Where messages go."""

    def write(self, data: bytes) -> None:
        """Send it, soon."""

    async def room(self) -> None:
        """Return when there is room for more. Raises ConnectionError: the client has gone."""

    def flush(self) -> None:
        """Send what is ready now."""


class Changes(Protocol):
    """What is followed. fields: its columns."""

    @property
    def fields(self) -> tuple[Field, ...]: ...

    async def take(self, count: int | None, wait_s: float | None) -> Rows:
        """The next rows, as soon as there is one."""


_NONE = pa.table({})


class Sender:
    """Sends to one client. pool: threads that write large parts."""

    def __init__(self, out: Out, pool: RequestWork) -> None:
        self._out = out
        self._pool = pool

    def described(self, rows: Rows) -> None:
        """Few rows, with what their columns are."""
        formats = [0] * len(rows.fields)
        data = results.messages_of(rows, formats, 0, rows.n) if rows.n else b""
        self._out.write(messages.row_description(rows.fields, formats))
        self._out.write(data)
        self.complete(rows, rows.n)

    async def rows(self, rows: Rows, formats: Sequence[int], start: int, stop: int) -> None:
        """Rows start to stop. Raises ConnectionError: the client has gone."""
        for begin in range(start, stop, PART_ROWS):
            end = min(stop, begin + PART_ROWS)
            work = partial(results.messages_of, rows, formats, begin, end)
            few = end - begin <= FEW_ROWS
            self._out.write(work() if few else await self._pool.do(work))
            await self._out.room()

    async def copy(self, rows: Rows, plan: Copied) -> None:
        """All rows as lines. Raises ConnectionError: the client has gone."""
        is_binary = plan.options.form == "binary"
        self._out.write(messages.copy_out(len(rows.fields), int(is_binary)))
        self._out.write(results.copy_head(rows, plan.options))
        for begin in range(0, rows.n, PART_ROWS):
            end = min(rows.n, begin + PART_ROWS)
            work = partial(results.copied, rows, plan.options, begin, end)
            data = await self._pool.do(work)
            self._out.write(results.signed(data) if is_binary and not begin else data)
            await self._out.room()
        if is_binary:
            self._out.write(results.COPY_END if rows.n else results.signed(results.COPY_END))
        self._out.write(messages.COPIED)
        self._out.write(messages.complete(f"COPY {rows.n}"))

    async def changes(self, changes: Changes, form: CopyOptions | Sequence[int]) -> NoReturn:
        """What a subscription gives, as it comes. form: of lines, or of each column.

        Raises ConnectionError: the client has gone; and why nothing follows.
        """
        begun = False
        if isinstance(form, CopyOptions):
            is_binary = form.form == "binary"
            self._out.write(messages.copy_out(len(changes.fields), int(is_binary)))
            self._out.write(results.copy_head(Rows(changes.fields, _NONE), form))
        self._out.flush()  # a first change may be long in coming
        while True:
            rows = await changes.take(None, None)
            if isinstance(form, CopyOptions):
                work = partial(results.copied, rows, form, 0, rows.n)
                data = work() if rows.n <= FEW_ROWS else await self._pool.do(work)
                self._out.write(results.signed(data) if form.form == "binary" and not begun else data)
            else:
                await self.rows(rows, form, 0, rows.n)
            begun = True
            self._out.flush()
            await self._out.room()

    def complete(self, result: Result, sent: int) -> None:
        """What is told of a result, and its tag. sent: rows."""
        if isinstance(result, Rows):
            for warning in result.warnings:
                self._out.write(notice_of(warning, severity="WARNING"))
            counted = result.tag in ("SELECT", "FETCH")
            self._out.write(messages.complete(f"{result.tag} {sent}" if counted else result.tag))
            return
        for message, hint in result.notices:
            self._out.write(notice_of(message, hint))
        self._out.write(messages.complete(result.tag))

    def ready(self, status: str) -> None:
        """The next statement is waited for. status: of the transaction."""
        self._out.write(messages.ready(status))
        self._out.flush()


def each(formats: Sequence[int], columns: int) -> list[int]:
    """The form of each column. Raises ProtocolViolation where there are others than columns."""
    if len(formats) in (0, 1):
        return [formats[0] if formats else 0] * columns
    if len(formats) != columns:
        raise ProtocolViolation(f"{len(formats)} formats are given for {columns} columns")
    return list(formats)
