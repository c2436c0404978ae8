"""What commands print: tables, errors, JSON.

With ``--json`` a command prints JSON on stdout and nothing else, an error as ``{"error": {...}}``.
Without it answers go to stdout, everything said about them to stderr, so that output can be piped.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tureen.cells import cell, instant
from tureen.errors import TureenError, UnknownSource, UnknownSummary

if TYPE_CHECKING:
    from rich.console import Console

    from tureen.client import Query
    from tureen.command_options import ByTopic
    from tureen.snapshot import Reply, Snapshot

PIPE_COLUMNS = 100_000
"""How wide a table may get in a pipe or a file, where nothing is cut or folded."""

WHOLE_MAX, RATIO_MAX = 12, 80
"""Characters: a column of the first is never cut, one longer than the second gets no more room for it."""


def out() -> Console:
    """Where answers go: a terminal, as wide as it is, or a pipe or a file, as wide as it takes."""
    from rich.console import Console

    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=PIPE_COLUMNS if wide else None)


def err() -> Console:
    """The terminal that is told about answers, and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def statement_text(text: str | None, file: Path | None) -> str | None:
    """The statement given as an argument or a file (``-``: stdin); None where there is none of them."""
    if text is not None and file is not None:
        raise click.UsageError("give the statement or --file, not both")
    if file is not None and str(file) == "-":
        text = stdin_text()
    elif file is not None:
        text = _utf8(file.read_bytes(), str(file))
    elif text == "-":
        text = stdin_text()
    if text is not None and any("\ud800" <= character <= "\udfff" for character in text):
        raise click.UsageError("the statement is not valid UTF-8")
    return text


def stdin_text() -> str:
    """All of stdin."""
    return _utf8(click.get_binary_stream("stdin").read(), "stdin")


def _utf8(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")  # editors write a byte order mark before it
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{name} is not UTF-8: byte {error.start}") from None


def about(sql: str) -> str:
    """Remember the statement that an error would be about; returns it."""
    click.get_current_context().meta["tureen.sql"] = sql
    return sql


FORMAT_HELP = "[default: table on a terminal, csv elsewhere]"


def default_form() -> str:
    """How an answer is written where nothing says so: for people on a terminal, for programs elsewhere."""
    return "table" if sys.stdout.isatty() else "csv"


# --- output ---------------------------------------------------------------------------------------


def show_json(value: Any) -> None:
    """One value, one line."""
    click.echo(json.dumps(value, default=str, ensure_ascii=False))


def write_answer(content: bytes, form: str) -> None:
    """An answer's bytes, to stdout."""
    stream = click.get_binary_stream("stdout")
    stream.write(content + b"\n" if form == "json" else content)
    stream.flush()


def show_reply(reply: Reply, form: str, *, stands: bool = True) -> None:
    """An answer as it came, to stdout, and what it says of itself, to stderr. stands: it can be followed."""
    import pyarrow as pa

    from tureen import remarks
    from tureen.snapshot import Snapshot

    write_answer(reply.content, form)
    remarks.show(Snapshot.said(pa.table({}), reply.headers), "the answer", stands=stands)


def show_altered(facts: Mapping[str, Any]) -> None:
    """What became of the feeds of a query that has another text."""
    told = {
        "continue": "its feeds continue with the difference of both answers",
        "must_refetch": "its columns or sources are others, so its feeds end with must_refetch",
    }
    if facts.get("changes") in told:
        err().print(told[facts["changes"]], style="dim")


def show_error(error: TureenError, sql: str | None = None, as_json: bool = False) -> None:
    """A refusal as people read it: what, where in the text, what to write instead."""
    if as_json:
        show_json({"error": error.as_dict()})
        return
    console = err()
    from rich.text import Text

    if sql is not None and error.line is not None:
        from tureen.carets import render

        console.print(Text("refused", style="bold red"), Text(render(sql, error)), sep="\n")
        return
    console.print(Text.assemble(("error: ", "bold red"), error.message))
    if error.hint:
        console.print(Text.assemble(("hint: ", "bold cyan"), error.hint))


def show_wrong_usage(error: click.ClickException) -> None:
    """Wrong usage (``usage``), or a file that cannot be read or written (``failed``), as JSON."""
    code = "usage" if isinstance(error, click.UsageError) else "failed"
    show_json({"error": {**TureenError(error.format_message()).as_dict(), "code": code}})


def instant_of_ms(ms: int | None) -> str:
    """
    >>> instant_of_ms(1356998400000)
    '2013-01-01 00:00'
    """
    if ms is None:
        return "-"
    from tureen.snapshot import instant_of

    return instant(instant_of(ms))


def show_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    numeric: Sequence[bool],
    cut: Sequence[bool] | None = None,
    folded: str | None = None,
    whole: str | None = None,
) -> None:
    """A table; ``numeric`` columns are aligned to the right.

    A terminal may be too narrow: ``cut`` columns are then cut, the more the longer they are, but the one
    named ``folded`` goes on in the next line. Without ``cut`` every column may fold, but the one named
    ``whole``.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = out()
    longest = [max(map(len, map(cell, values))) for values in zip(columns, *rows, strict=True)]
    may = cut or [False] * len(columns)
    flexible = [one and length > WHOLE_MAX for one, length in zip(may, longest, strict=True)]
    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        expand=any(flexible) and console.width < PIPE_COLUMNS,
    )
    for place, (name, right) in enumerate(zip(columns, numeric, strict=True)):
        table.add_column(
            Text(cell(name)),
            justify="right" if right else "left",
            overflow="fold" if cut is None or name == folded else "ellipsis",
            no_wrap=name == whole or (cut is not None and name != folded),
            ratio=min(longest[place], RATIO_MAX) * (1 + (name == folded)) if flexible[place] else None,
        )
    for row in rows:
        table.add_row(*(Text(cell(value), style="dim" if value is None else "") for value in row))
    console.print(table)


def show_snapshot(snapshot: Snapshot, rows_max: int, *, stands: bool = True) -> None:
    """The last ``rows_max`` rows of an answer, and what it says of itself. stands: it can be followed."""
    import pyarrow as pa

    table = snapshot.table
    shown = table.slice(max(0, table.num_rows - rows_max))
    numeric = [
        pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
        for f in table.schema
    ]
    columns = [column.to_pylist(maps_as_pydicts="lossy") for column in shown.columns]
    show_table(table.column_names, list(zip(*columns, strict=True)), numeric)
    from tureen import remarks

    rows = f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}"
    if shown.num_rows < table.num_rows:
        rows += f", the last {shown.num_rows:,} shown"
    remarks.show(snapshot, rows, stands=stands)


def show_warnings(warnings: Iterable[Mapping[str, Any]]) -> None:
    """What a statement that was carried out was answered with besides: likely mistakes."""
    for one in warnings:
        err().print(f"warning: {one.get('message')}", style="yellow", markup=False, soft_wrap=True)
        if one.get("hint"):
            err().print(f"hint: {one['hint']}", style="cyan", markup=False, soft_wrap=True)


def show_lost(late: int, dead_letters: int, counted_from_ms: int | None) -> None:
    """Say that an answer lacks records of its sources, where it does, and how to see them."""
    if not late and not dead_letters:
        return
    since = "" if counted_from_ms is None else f" since {instant_of_ms(counted_from_ms)} UTC"
    found = []
    if late:
        found.append(f"{late:,} came late (tureen late)")
    if dead_letters:
        found.append(f"{dead_letters:,} could not be read (tureen dead-letters)")
    err().print(f"of the records of its sources{since}, {' and '.join(found)}", style="yellow")


def registered(query: Query) -> dict[str, Any]:
    """What became of a registration, for ``--json``; ``error`` is there for one that is PENDING, ``output``,
    ``lane`` and ``warnings`` where that was told."""
    told = {"handle": query.handle, "query_id": query.query_id, "state": query.state}
    told |= {
        name: query.facts[name]
        for name in ("output", "lane", "warnings")
        if query.facts.get(name) is not None
    }
    return told if query.error is None else {**told, "error": query.error.as_dict()}


def _show_pending(query_id: str, error: TureenError | None) -> None:
    """Why a query does not stand yet: what it uses is missing, or it is on its way."""
    waits = {UnknownSource.code: "stream", UnknownSummary.code: "summary"}
    missing = None if error is None else waits.get(error.code)
    what = "is on its way" if missing is None else f"waits for its {missing} to be created"
    why = "" if error is None else f": {error.message}"
    err().print(f"query {query_id} {what}{why}", style="yellow", markup=False)
    if error is not None and error.hint:
        err().print(f"hint: {error.hint}", style="yellow", markup=False)
    if missing is not None:
        err().print(LOOKED_AT_AGAIN, style="dim")


def show_handle(query: Query, on_stdout: bool, topics: ByTopic | None = None) -> None:
    """A handle is shown once, here: it is the only way back to the answer.

    on_stdout: the bare handle goes to stdout, for `HANDLE=$(tureen register ...)`. topics: it was registered
    by topic, where nobody knows whether a broker serves it, which answers snapshots, or a scale-out.
    """
    console = err()
    if query.state == "PENDING":
        _show_pending(query.query_id, query.error)
    elif query.state == "PUBLISHED":
        where = topics.status if topics is not None else "its status topic"
        console.print(
            f"query {query.query_id} is published; there is no record of it on {where} yet", style="yellow"
        )
    else:
        console.print(f"query {query.query_id} is running", style="green")
    if on_stdout:
        console.print("its handle, a secret that is shown only once:", style="dim")
        click.echo(query.handle)
    if topics is None:
        if output := query.facts.get("output"):
            topic = output["topic"]
            console.print(
                f"its changes go to {topic}: tureen watch {query.handle}, or tureen records {topic}",
                style="dim",
            )
        console.print(f"fetch its answer: tureen snapshot {query.handle}", style="dim")
        return
    if query.state in ("PENDING", "PUBLISHED"):
        console.print(f"its state: tureen queries {topics.flags}", style="dim")
    if (topic := topics.written_to(query)) is not None:
        console.print(
            f"its changes go to {topic}; to follow them: tureen watch {topics.flags} {query.handle}",
            style="dim",
        )
    if topic is None or (query.state == "RUNNING" and "lane" not in query.facts):
        console.print(f"fetch its answer: tureen snapshot {topics.flags} {query.handle}", style="dim")


LOOKED_AT_AGAIN = (
    "it is checked again whenever a stream, a table, a view or a summary is created; a scale-out does so "
    "at its next micro-batch"
)
"""The hint of a PENDING query, whose status is that of the last check."""
