"""Answers and queries as notebooks show them: small tables in plain HTML, everything in them escaped.

Colours and fonts are the notebook's. Handles are never shown.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from html import escape
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from tureen.cells import cell
from tureen.errors import PackageMissing, TureenError
from tureen.snapshot import Snapshot
from tureen.sparkline import sparkline

if TYPE_CHECKING:
    from tureen.changes_feed import Options
    from tureen.client import Query
    from tureen.live import Folded, LiveAnswer

ROWS_SHOWN = 20
CELL_CHARACTERS = 200
EVERY_MIN_S = 0.05
SIZES_KEPT = 1_000
"""Points of the line that shows the number of rows."""


def snapshot_html(answer: Snapshot, line: str = "") -> str:
    """A table of the last rows with the types, lines of numeric columns over time, and what the answer says
    of itself: rows, NOW, position, and what it lacks. line: SVG that stands behind that.

    O(rows) for the lines, else O(rows shown).
    """
    table = answer.table
    shown = table.slice(max(0, table.num_rows - ROWS_SHOWN))
    names = "".join(
        f"<th>{escape(field.name)}<br/><small>{escape(str(field.type))}</small></th>"
        for field in table.schema
    )
    head = f"<tr>{names}</tr>"
    lines = _lines(table)
    if any(lines):
        head += f"<tr>{''.join(f'<td>{line}</td>' for line in lines)}</tr>"
    columns = [column.to_pylist(maps_as_pydicts="lossy") for column in shown.columns]
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>"
        for row in zip(*columns, strict=True)
    )
    said = ", ".join(_said(answer))
    caption = escape(said) + (f" {line}" if line else "")
    return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"


def query_html(query_id: str, state: str | None, sql: str | None, error: TureenError | None) -> str:
    """A query: its public id, its state and its text."""
    told = f"query {query_id}" + (f", {state}" if state else "")
    text = f"<pre>{escape(sql)}</pre>" if sql else ""
    why = f"<pre>{escape(str(error))}</pre>" if error is not None else ""
    return f"<div>{escape(told)}{text}{why}</div>"


def live_html(live: Folded) -> str:
    """A live answer as it is now, with a remark while the broker is away or where following ended."""
    over = live.over
    return _live_html(live, "") + ("" if over is None else _remark(over))


def display_live(
    query: Query, every: float = 0.5, *, times: int | None = None, **options: Unpack[Options]
) -> None:
    """Follow a query in a notebook: its answer as a table that changes with it, until the cell is
    interrupted.

    query: one that was registered, or ``client.query(handle)``. every: seconds between two drawings at least;
    nothing is drawn while nothing changes. times: so many drawings. options: those of ``query.changes``.
    Beside the table a line shows the number of rows over time. While the broker is away the last answer
    stays, with a remark; a query that is gone ends it. Raises PackageMissing without IPython,
    ValueError for an ``every`` below 0.05, and what ``query.follow`` raises.
    """
    if not every >= EVERY_MIN_S:
        raise ValueError(f"every is at least {EVERY_MIN_S} s")
    try:
        shell: Any = import_module("IPython.display")
    except ModuleNotFoundError:
        raise PackageMissing("ipython", hint="pip install ipython; print(snapshot) needs none") from None
    place = None
    try:
        with query.follow(**options) as live:
            for html in pictures(live, every, time.sleep, times):
                drawn = shell.HTML(html)
                if place is None:
                    place = shell.display(drawn, display_id=True)
                else:
                    place.update(drawn)
    except KeyboardInterrupt:
        return


def pictures(
    live: LiveAnswer, every: float, pause: Callable[[float], None], times: int | None = None
) -> Iterator[str]:
    """What :func:`display_live` draws, one after another. pause: waits so many seconds."""
    seen = 0
    sizes: deque[tuple[float, float | None]] = deque(maxlen=SIZES_KEPT)
    for turn in count():
        if turn == times:
            return
        if turn:
            pause(every)
        with contextlib.suppress(TureenError):  # told below
            live.wait_for(lambda: live.version != seen)  # noqa: B023 - asked before the loop goes on
        if (over := live.over) is not None:
            yield _live_html(live, sparkline(sizes)) + _remark(over)
            return
        seen = live.version
        if live.now_ms is not None:
            sizes.append((live.now_ms, len(live)))
        yield _live_html(live, sparkline(sizes))


def _live_html(live: Folded, line: str) -> str:
    answer = Snapshot(live.to_arrow(), live.position or "", live.now_ms)
    return snapshot_html(answer, line) + ("" if live.away is None else _remark(live.away))


def _remark(error: Exception) -> str:
    return f"<pre>{escape(str(error))}</pre>"


def _said(answer: Snapshot) -> Iterator[str]:
    rows = "1 row" if len(answer) == 1 else f"{len(answer):,} rows"
    yield rows if len(answer) <= ROWS_SHOWN else f"the last {ROWS_SHOWN} of {rows}"
    yield "nothing has come in yet" if answer.now_ms is None else f"NOW {_instant(answer.now_ms)}"
    if answer.position:
        yield f"position {answer.position}"
    if answer.archive_rows is not None:
        yield f"with {answer.archive_rows:,} rows of the archive"
    if not answer.complete:
        since = answer.complete_from_ms
        yield "incomplete" + ("" if since is None else f": complete from {_instant(since)} on")
        yield from map(str, answer.catching_up)
    if answer.approximation:
        yield "approximate: " + ", ".join(map(str, answer.approximation))
    if answer.condition_errors:
        yield f"without {answer.condition_errors:,} rows whose condition could not be computed"
    if answer.errors:
        yield f"{answer.errors:,} values could not be computed"
    if answer.late or answer.dead_letters:
        yield f"without {answer.late:,} late rows and {answer.dead_letters:,} dead letters of its sources"


def _instant(ms: int) -> str:
    """In UTC; the number where no calendar has such a day."""
    try:
        at = datetime.fromtimestamp(ms / 1_000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{at.isoformat(sep=' ', timespec='milliseconds')} UTC"


def _cell(value: Any) -> str:
    """A value, cut where it is long; NULL is not the string of that name."""
    if value is None:
        return "<i>NULL</i>"
    text = str(value) if isinstance(value, str | float | date) else cell(value)
    return escape(text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}…")


def _lines(table: pa.Table) -> list[str]:
    """For each column a line over time, where it is numeric and the rows are in the order of a timestamp."""
    times = _times(table)
    if times is None:
        return [""] * table.num_columns
    return [
        sparkline(list(zip(times, _numbers(column), strict=True))) if _is_number(column.type) else ""
        for column in table.columns
    ]


def _times(table: pa.Table) -> list[float] | None:
    """The first column of instants without NULL that never goes back, as numbers."""
    for column in table.columns:
        if pa.types.is_timestamp(column.type) and column.null_count == 0 and len(column) > 1:
            instants = column.cast(pa.int64())
            values = instants.combine_chunks()
            if pc.all(pc.less_equal(values.slice(0, len(values) - 1), values.slice(1))).as_py():
                return [float(at) for at in values.to_pylist()]
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _numbers(column: pa.ChunkedArray) -> list[float | None]:
    return [None if value is None else float(value) for value in column.to_pylist()]
