"""The state of one shard in the checkpoint: a journal of the rows it got, and snapshots of its engine.

    <checkpoint>/shards/layout.json              how rows are cut, and the name of this checkpoint's run
    <checkpoint>/shards/<n>/rows-<batch>.arrow   what shard n got in a micro-batch, written before its output
    <checkpoint>/shards/<n>/engine-<batch>.arrow its engine after that micro-batch, now and then

The engine after a micro-batch is that of the last snapshot with the rows after it, whoever works it out. What
a snapshot makes needless goes with the next one, so that the last micro-batch can always be done once more.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import Stream
from spark_jobs.errors import CheckpointMismatch, CheckpointUnreadable
from spark_jobs.scale_out.journal import Directory
from spark_jobs.scale_out.shards.bodies import RowsOf
from spark_jobs.scale_out.shards.entries import BEGIN_ANEW, StoredEntry, decode_entries, encode_entries
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.scale_out.shards.snapshot import entries_of, restored
from storage import row_codec
from tureen.errors import StoreError

VERSION = 1
SNAPSHOT_BATCHES = 32
"""A snapshot each so many micro-batches: a process that is new to a shard reads no more of them again."""

ROWS, ENGINE = "rows", "engine"
LAYOUT = "layout.json"


def shards_uri(checkpoint: str) -> str:
    """Where the state of all shards is."""
    return f"{checkpoint.rstrip('/')}/shards"


def open_shards(checkpoint: str, layout: Layout) -> str:
    """The name of the checkpoint's run, made when it begins. Raises CheckpointMismatch: its rows are cut
    otherwise; CheckpointUnreadable.
    """
    directory = Directory(shards_uri(checkpoint))
    data = directory.read(LAYOUT)
    if data is None:
        run = uuid.uuid4().hex
        directory.write(LAYOUT, orjson.dumps({"v": VERSION, "run": run, "layout": layout.as_dict()}))
        return run
    try:
        facts = orjson.loads(data)
        version, run, there = facts["v"], str(facts["run"]), facts["layout"]
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointUnreadable(
            directory.uri, f"{LAYOUT} is damaged: {error!r}", hint=BEGIN_ANEW
        ) from error
    if version != VERSION:
        raise CheckpointUnreadable(
            directory.uri,
            f"{LAYOUT} is of version {version}, this program reads version {VERSION}",
            hint="run the version that wrote it, or start with an empty directory",
        )
    if there != layout.as_dict():
        raise CheckpointMismatch(
            checkpoint,
            f"holds rows cut as {_said(there)}, not as {_said(layout.as_dict())}",
            hint="give the earlier options, or start with an empty directory",
        )
    return run


def _said(layout: Mapping[str, Any]) -> str:
    keys = [f"{name} by {column}" for name, column in sorted(layout["keys"].items())]
    whole = [f"{name} whole as well" for name in layout["whole"]]
    return ", ".join([f"{layout['shards']} shards", *keys, *whole])


class ShardState:
    """The files of one shard."""

    def __init__(self, checkpoint: str, shard: int, limits: Limits | None = None) -> None:
        self._limits = limits
        self._directory = Directory(f"{shards_uri(checkpoint)}/{shard}")

    # --- rows ---------------------------------------------------------------------------------------

    def write_rows(self, batch: int, rows: Mapping[str, Batch]) -> None:
        """What the shard got, by source; once it is there it stays as it is.

        Raises CheckpointMismatch where other rows are there: each attempt must read what the first did.
        """
        name = _file(ROWS, batch)
        digest = _digest(rows)
        data = self._directory.read(name)
        if data is None:
            entries = [
                StoredEntry("rows", source, len(got), row_codec.encode(got)) for source, got in rows.items()
            ]
            self._directory.write(name, encode_entries({"digest": digest}, entries))
        elif decode_entries(data, self._named(name))[0]["digest"] != digest:
            raise CheckpointMismatch(
                self._named(name),
                "holds other rows than this micro-batch gives now",
                hint="records may have gone by retention, or two runs share the checkpoint; begin with an "
                "empty directory",
            )

    def read_rows(self, batch: int) -> RowsOf:
        """The rows of an earlier micro-batch. Raises CheckpointUnreadable, now or when they are asked for."""
        name = _file(ROWS, batch)
        found = {entry.name: entry.value for entry in self._entries(name)}

        def rows_of(stream: Stream) -> Batch:
            value = found.get(stream.name)
            if value is None:
                return Batch.empty(stream.stored_schema)
            try:
                return row_codec.decode(value, stream.stored_schema, f"the rows of {stream.name}")
            except StoreError as damaged:
                raise CheckpointUnreadable(self._named(name), damaged.message, hint=BEGIN_ANEW) from damaged

        return rows_of

    # --- engines ------------------------------------------------------------------------------------

    def write_engine(self, batch: int, engine: Engine) -> None:
        """A snapshot after a micro-batch; what only those before the last one needed goes."""
        name = _file(ENGINE, batch)
        self._directory.write(name, encode_entries({"batch": batch}, entries_of(engine)))
        earlier = [one for one in self._numbers(ENGINE) if one < batch]
        if earlier:
            self._let_go(earlier[-1])

    def _let_go(self, before: int) -> None:
        for number in self._numbers(ENGINE):
            if number < before:
                self._directory.remove(_file(ENGINE, number))
        for number in self._numbers(ROWS):
            if number <= before:
                self._directory.remove(_file(ROWS, number))

    def read_engine(self, until: int) -> tuple[int, Engine]:
        """(micro-batch, the engine after it): the last snapshot up to that one; (0, an engine that knows
        nothing) where there is none. Raises CheckpointUnreadable.
        """
        found = [one for one in self._numbers(ENGINE) if one <= until]
        if not found:
            return 0, Engine(self._limits)
        name = _file(ENGINE, found[-1])
        return found[-1], restored(self._entries(name), self._named(name), self._limits)

    def needed_from(self) -> int:
        """The first micro-batch that may be read again: after the snapshot before the last, which is what the
        last one's micro-batch begins with if it is done once more.
        """
        snapshots = self._numbers(ENGINE)
        return snapshots[-2] + 1 if len(snapshots) > 1 else 1

    # --- files --------------------------------------------------------------------------------------

    def _entries(self, name: str) -> list[StoredEntry]:
        data = self._directory.read(name)
        if data is None:
            raise CheckpointUnreadable(self._named(name), "it is missing", hint=BEGIN_ANEW)
        return decode_entries(data, self._named(name))[1]

    def _named(self, name: str) -> str:
        return f"{self._directory.uri}/{name}"

    def _numbers(self, kind: str) -> list[int]:
        matched = (re.fullmatch(rf"{kind}-(\d+)\.arrow", name) for name in self._directory.names(""))
        return sorted(int(one[1]) for one in matched if one is not None)


def is_due(batch: int, shard: int, every: int) -> bool:
    """Whether a snapshot is taken after this micro-batch; not by all shards at once."""
    return (batch + shard) % every == 0


def _file(kind: str, batch: int) -> str:
    return f"{kind}-{batch}.arrow"


def _digest(rows: Mapping[str, Batch]) -> str:
    """Hash which rows there are and their timestamps, not how they are held."""
    found = hashlib.sha256()
    for source in sorted(rows):
        got = rows[source]
        found.update(f"{source}\0{len(got)}\0".encode())
        for array in (got.partition, got.offset, got.timestamp):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
