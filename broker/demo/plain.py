"""What the board's plain computations are made of: windows and groups of the files' rows, by Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.demo.flights import Replayed


def between(stream: Replayed, begin_ms: int, end_ms: int) -> pa.Table:
    """The rows of [begin, end], both ends in it."""
    begin = int(np.searchsorted(stream.ts_ms, begin_ms, side="left"))
    end = int(np.searchsorted(stream.ts_ms, end_ms, side="right"))
    return stream.table.slice(begin, max(0, end - begin))


def last(stream: Replayed, now_ms: int, span_ms: int) -> pa.Table:
    """The rows of a sliding window."""
    return between(stream, now_ms - span_ms, now_ms)


def groups(rows: pa.Table, keys: list[str], *aggregates: tuple[str, str, str]) -> pa.Table:
    """Grouped, in the order of each group's first row. aggregates: (column, Arrow's function, name)."""
    asked = [([], "count_all") if column == "*" else (column, function) for column, function, _ in aggregates]
    found = rows.group_by(keys, use_threads=False).aggregate(asked)
    made = ["count_all" if column == "*" else f"{column}_{function}" for column, function, _ in aggregates]
    return pa.table(
        {key: found[key] for key in keys}
        | {name: found[column] for (_, _, name), column in zip(aggregates, made, strict=True)}
    )


def closed(stream: Replayed, now_ms: int, slide_ms: int, size_ms: int, within_ms: int | None) -> pa.Table:
    """Rows once for each window that is over at NOW (and ended ``within_ms``), by the windows' ends."""
    ends = np.arange(
        int(stream.ts_ms[0]) // slide_ms * slide_ms,
        (now_ms + 1) // slide_ms * slide_ms + size_ms + 1,
        slide_ms,
        dtype=np.int64,
    )
    ends = ends[(ends - 1 <= now_ms) & (ends - 1 >= (now_ms - within_ms if within_ms is not None else 0))]
    begins = np.searchsorted(stream.ts_ms, ends - size_ms, side="left")
    lengths = np.searchsorted(stream.ts_ms, ends, side="left") - begins
    before = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(ends) else lengths
    places = np.arange(int(lengths.sum())) + np.repeat(begins - before, lengths)
    instants = pa.timestamp("ms")
    return (
        stream.table.take(places)
        .append_column("window_start", pa.array(np.repeat(ends - size_ms, lengths), instants))
        .append_column("window_end", pa.array(np.repeat(ends, lengths), instants))
    )


def only(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The rows where it is true."""
    return rows.filter(pc.fill_null(mask, False))


def listed(rows: list[dict[str, object]], like: pa.Table, *names: str) -> pa.Table:
    """Rows as a table with these columns of ``like``."""
    return pa.Table.from_pylist(
        [{name: row[name] for name in names} for row in rows],
        pa.schema([like.schema.field(name) for name in names]),
    )
