"""A query's answer and its changes as rows that a client fetches: what SUBSCRIBE gives.

    change_position  text         after the last row of a step: where ``WITH (since = ...)`` goes on
    change_at        timestamptz  the instant of the change, in the query's time
    change_weight    int4         1 it came, -1 it went
    ...                           the row

A subscription is a reader of a change feed (:mod:`broker.feeds`): it holds a position, and the steps that it
just took, of which rows are given out. So one that is slow holds nobody; when what it has not read is no
longer kept, and cannot be worked out again, it is refused by MustRefetch. It counts as a feed, of which there
are ``feeds_max``.

Runs on the event loop. Cost: as a feed, and about a microsecond a value.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from broker.feeds.reader import ChangeLines, Reader
from broker.http.feeds import Feeds
from broker.postgres import types
from broker.postgres.messages import Field
from broker.postgres.relations import Columns
from broker.postgres.results import Rows
from engine.model.json_texts import json_values
from engine.model.types import Type
from tureen.columns import Column, rows_of
from tureen.errors import BrokerUnavailable, UnknownQuery

LEADING = (
    Field("change_position", types.TEXT, -1),
    Field("change_at", types.TIMESTAMPTZ, 8),
    Field("change_weight", types.INT4, 4),
)
"""The columns before those of the row."""
AT_ONCE_ROWS = 10_000
"""What is ready is gathered for one FETCH until it has so many rows."""


def fields_of(columns: Columns) -> tuple[Field, ...]:
    """The columns of a subscription. columns: of the answer."""
    return (*LEADING, *(types.field_of(name, type_) for name, type_ in columns))


def schema_of(columns: Columns) -> pa.Schema:
    """The columns of a subscription in Arrow."""
    return _table(columns, [], []).schema


class Subscription:
    """Changes of one query. form: of its rows, 0 text, 1 binary."""

    def __init__(self, feeds: Feeds, columns: Columns, leave: Callable[[], None], form: int = 0) -> None:
        """leave: called once when nobody reads it any more."""
        self.fields = fields_of(columns)
        self.form = form
        self._feeds = feeds
        self._columns = columns
        self._leaving = contextlib.ExitStack()
        self._leaving.callback(leave)
        self._reader: Reader | None = None
        self._query_id = ""
        self._ready: list[pa.Table] = []
        """What was read and is not given out."""
        self._news = asyncio.Event()

    async def open(self, query_id: str, since: str | None, *, snapshot: bool) -> None:
        """Follow a query. since: go on from there, else begin with the answer where ``snapshot``.

        Raises TooManyFeeds, PositionRefused, MustRefetch, and what refuses an answer.
        """
        self._feeds.enter()
        self._leaving.callback(self._feeds.leave)
        self._query_id = query_id
        reader = self._reader = await self._feeds.reader(query_id, self)
        self._leaving.callback(self._feeds.follows.leave, reader.memory, self)
        if since is not None:
            reader.resume(since)
            return
        answer = await reader.snapshot()
        rows = reader.rows(answer)
        if snapshot and rows.num_rows:
            self._ready.append(_snapshot(self._columns, rows, str(reader.cursor), answer.now_ms))

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows in Arrow."""
        return schema_of(self._columns)

    def wake(self) -> None:
        """There is something new."""
        self._news.set()

    @property
    def nbytes(self) -> int:
        """What it holds."""
        return sum(one.nbytes for one in self._ready)

    async def take(self, count: int | None, wait_s: float | None) -> Rows:
        """The next rows, ``count`` at most, as soon as there is one. wait_s: for how long at most; None: as
        long as it takes.

        Raises MustRefetch: the reader is too far behind. UnknownQuery, BrokerUnavailable: nothing follows.
        """
        wanted = AT_ONCE_ROWS if count is None else count
        loop = asyncio.get_running_loop()
        until_s = None if wait_s is None else loop.time() + wait_s
        while wanted and not self._ready:
            self._news.clear()
            if await self._read():
                break
            if until_s is not None and until_s <= loop.time():
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until_s):
                    await self._news.wait()
        while 0 < sum(one.num_rows for one in self._ready) < wanted and await self._read():
            pass
        return self._given(wanted)

    def _given(self, wanted: int) -> Rows:
        parts: list[pa.Table] = []
        while self._ready and wanted:
            part = self._ready[0].slice(0, wanted)
            rest = self._ready[0].slice(part.num_rows)
            self._ready[:1] = [rest] if rest.num_rows else []
            wanted -= part.num_rows
            parts.append(part)
        table = pa.concat_tables(parts) if parts else _table(self._columns, [], [])
        return Rows(self.fields, table, tag="FETCH")

    async def _read(self) -> bool:
        """Read what is there; whether there was something. Raises why nothing follows, once all is given."""
        assert self._reader is not None
        pieces = await self._reader.more()
        self._ready += [_changes(self._columns, piece) for piece in pieces]
        self._feeds.counts.changes += sum(piece.rows for piece in pieces)
        if pieces or self._reader.end is None or self._ready:
            return bool(pieces)
        end = await self._feeds.why(self._query_id, self._reader.end)
        if end.error is not None:
            raise end.error
        if end.reason == "unregistered":
            raise UnknownQuery(hint="the query was ended")
        raise BrokerUnavailable("the broker is stopping", hint="subscribe again in a second")

    def close(self) -> None:
        """Nobody reads it any more."""
        self._ready.clear()
        self._leaving.close()


Leading = tuple[str | None, int | None, int]
"""Position, instant in ms, and weight of a change."""
_JSON = pa.json_(pa.string())


def _snapshot(columns: Columns, rows: pa.Table, position: str, now_ms: int | None) -> pa.Table:
    n = rows.num_rows
    leading: list[Leading] = [(None, now_ms, 1)] * (n - 1) + [(position, now_ms, 1)]
    arrays = [
        _json_of(column) if _is_json(type_) else column.cast(type_.arrow)
        for (_, type_), column in zip(columns, rows.columns, strict=True)
    ]
    return _named(columns, leading, arrays)


def _json_of(column: pa.ChunkedArray) -> pa.Array:
    texts = pc.if_else(column.combine_chunks().is_valid(), json_values(column), None)
    return pa.ExtensionArray.from_storage(_JSON, texts)


def _changes(columns: Columns, piece: ChangeLines) -> pa.Table:
    """The changes of a step. Their lines are those that every feed has."""
    is_nested = any(type_.is_nested for _, type_ in columns)
    load: Callable[[bytes], Any] = json.loads if is_nested else orjson.loads  # digits of JSON as they are
    changes = [change for line in piece.lines for change in load(line)["changes"]]
    last = len(changes) - 1
    leading: list[Leading] = [
        (str(piece.cursor) if place == last else None, at_ms, weight)
        for place, (weight, at_ms, _) in enumerate(changes)
    ]
    return _table(columns, leading, [row for _, _, row in changes])


def _table(columns: Columns, leading: list[Leading], rows: Sequence[Sequence[Any]]) -> pa.Table:
    typed = [Column(name, _AS_IT_IS if _is_json(type_) else str(type_)) for name, type_ in columns]
    read = list(zip(*rows_of(typed, rows), strict=True)) if rows else [()] * len(columns)
    arrays = [
        _json(values) if _is_json(type_) else pa.array(values, type_.arrow)
        for (_, type_), values in zip(columns, read, strict=True)
    ]
    return _named(columns, leading, arrays)


_AS_IT_IS = "STRING"
"""A type whose values are in Python as in JSON."""


def _named(columns: Columns, leading: list[Leading], arrays: Sequence[pa.Array]) -> pa.Table:
    position, at_ms, weight = zip(*leading, strict=True) if leading else ((), (), ())
    first = [
        pa.array(position, pa.string()),
        pa.array(at_ms, pa.timestamp("ms")),
        pa.array(weight, pa.int32()),
    ]
    names = [*(one.name for one in LEADING), *(name for name, _ in columns)]
    return pa.Table.from_arrays([*first, *arrays], names=names)


def _is_json(type_: Type) -> bool:
    return types.field_of("", type_).oid == types.JSON


def _json(values: Sequence[Any]) -> pa.Array:
    texts = [
        None if one is None else json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in values
    ]
    return pa.ExtensionArray.from_storage(_JSON, pa.array(texts, pa.string()))
