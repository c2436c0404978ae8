"""``tureen sql``: statements, one after another, or a small prompt."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import click

from tureen import command_options, console
from tureen.answers import Listing
from tureen.client import ONCE, Client, Query
from tureen.errors import BrokerUnavailable, TureenError, UnknownQuery
from tureen.facts import error_from
from tureen.protocol import SnapshotFormat
from tureen.statements import Placed, is_followed, is_query, placed, registered_text, split
from tureen.units import duration_of_ns, size_of

HELP = """\
Statements end with ; and may take several lines. A SELECT is asked once, with EMIT CHANGES until Ctrl-C;
REGISTER SELECT ... registers it and shows its handle once.
Without ; on a line of their own: sources, queries, help, exit."""
DRY_RUN = "tureen.dry_run"
PROMPT = "tureen> "
CONTINUED = "   ...> "


def _note_dry_run(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[DRY_RUN] = value


@click.command(no_args_is_help=False)
@click.argument("text", required=False)
@click.option(
    "--file",
    "-f",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Read the statement from a file.",
)
@click.option(
    "--wait/--no-wait",
    "waits",
    default=True,
    help="Ask a SELECT when its sources have read what their topics hold, or at once.  [default: wait]",
)
@click.option("--continue", "goes_on", is_flag=True, help="Run the statements behind a refused one too.")
@click.option(
    "--dry-run",
    is_flag=True,
    expose_value=False,
    callback=_note_dry_run,
    help="Print what CREATE ... FROM TOPIC means, and do nothing.",
)
@click.option("--once", is_flag=True, hidden=True, expose_value=False, help="A SELECT is asked once anyway.")
@click.option(
    "--archive/--no-archive",
    default=None,
    help="Complete a SELECT's answer by archived rows, or never.  [default: never]",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "ndjson", "csv"]), help=console.FORMAT_HELP
)
@click.option(
    "--rows", type=click.IntRange(1), default=20, show_default=True, help="Show at most so many rows."
)
@command_options.broker_options
def sql(
    text: str | None,
    file: Path | None,
    waits: bool,
    goes_on: bool,
    archive: bool | None,
    form: str | None,
    rows: int,
    broker: command_options.Broker,
) -> None:
    """Run statements: create streams, tables and views, ask and register queries, SHOW QUERIES.

    Also DROP [CASCADE], SHOW STREAMS, DESCRIBE name, EXPLAIN [ANALYZE], PAUSE, RESUME and TERMINATE
    'handle or id', ALTER QUERY 'handle' AS SELECT.

    TEXT is one or more statements, divided by semicolons; `-` or nothing reads stdin, and a terminal gets a
    prompt. The first that is refused ends the run, unless it is to --continue; lines and columns are those of
    the whole text. A SELECT is answered once and leaves nothing behind, as a
    table on a terminal and as CSV elsewhere. Where a stream has not read yet what its topic held when it was
    created, or the broker started, it waits for that; --no-wait does not. With EMIT CHANGES a terminal shows
    its changes until Ctrl-C. REGISTER SELECT registers it, and prints its handle once.

    \b
    tureen sql "CREATE STREAM trades (symbol STRING, price DOUBLE)"
    tureen sql "SELECT COUNT(*) FROM trades" --json
    tureen sql "REGISTER SELECT * FROM trades [RANGE 1 HOUR] WHERE price > 100"
    """
    answers = Answers(
        rows,
        form or ("json" if broker.as_json else console.default_form()),
        archive,
        waits,
        listings=form,
        is_dry=click.get_current_context().meta[DRY_RUN],
    )
    given = console.statement_text(text, file)
    with broker.client() as client:
        if given is None and sys.stdin.isatty():
            _converse(client, answers)
            return
        if given is None:
            given = console.stdin_text()
        statements = placed(given)
        if not statements:
            raise click.UsageError("there is no statement to run")
        run_all(client, given, statements, answers, goes_on=goes_on, as_json=broker.as_json)


def run_all(
    client: Client,
    text: str,
    statements: Sequence[Placed],
    answers: Answers,
    *,
    goes_on: bool,
    as_json: bool,
) -> None:
    """The statements of a text, one after another. goes_on: also behind one that is refused; the exit code
    tells it. Raises TureenError, with its place in the text.
    """
    refused = 0
    for number, statement in enumerate(statements, 1):
        try:
            run(client, statement.sql, answers, as_json)
        except TureenError as error:
            if len(statements) > 1:
                statement.place(error)
            console.about(text if len(statements) > 1 else registered_text(statement.sql) or statement.sql)
            rest = len(statements) - number
            if goes_on and not isinstance(error, BrokerUnavailable):
                refused += 1
                error.message = f"statement {number:,} of {len(statements):,}: {error.message}"
                console.show_error(error, text if len(statements) > 1 else statement.sql, as_json)
                continue
            if rest:
                left = f"the {rest:,} after it {'was' if rest == 1 else 'were'} not run"
                error.message = f"statement {number:,} of {len(statements):,}, {left}: {error.message}"
            raise
    if refused:
        click.get_current_context().exit(1)


@dataclass(frozen=True, slots=True)
class Answers:
    """How answers are shown. rows: of a table, at most. archive: as of a snapshot. waits: for sources that
    have not yet what their topics held. written: what INSERT has answered since the last SELECT, which waits
    for it too. listings: the form of tables of SHOW and so on; None: for people. is_dry: nothing is done,
    what CREATE ... FROM TOPIC means is shown.
    """

    rows: int
    form: str
    archive: bool | None = None
    waits: bool = True
    written: list[Mapping[str, Any]] = field(default_factory=list)
    listings: str | None = None
    is_dry: bool = False


def run(client: Client, statement: str, answers: Answers, as_json: bool) -> None:
    """One statement. Raises TureenError."""
    if answers.is_dry:
        _show_meaning(client.infer(sql=console.about(statement)), as_json)
        return
    registered = registered_text(statement)
    if registered is not None:
        query = client.register(console.about(registered))
        if as_json:
            console.show_json(console.registered(query))
        else:
            console.show_handle(query, on_stdout=True)
            console.show_warnings(query.facts.get("warnings") or ())
    elif is_query(console.about(statement)):
        _ask(client, statement, answers)
    else:
        listing = client.execute(statement)
        if listing.facts.get("state") == "WRITTEN":
            answers.written.append(listing.facts)
        if "handle" in listing.facts and not as_json:
            _show_created(client, listing.facts)
        else:
            _show_listing(listing, answers, as_json)


def _show_meaning(found: Mapping[str, Any], as_json: bool) -> None:
    """What CREATE ... FROM TOPIC means."""
    from tureen.commands import infer

    if as_json:
        console.show_json(found)
    else:
        infer.show(found)


def _show_created(client: Client, facts: Mapping[str, Any]) -> None:
    """What CREATE QUERY and CREATE MATERIALIZED VIEW made, and its handle, once."""
    error = facts.get("error")
    query = Query(
        client,
        facts["handle"],
        state=facts.get("state"),
        error=error_from(error) if error else None,
        facts=facts,
    )
    console.show_handle(query, on_stdout=True)
    console.show_warnings(facts.get("warnings") or ())


def _ask(client: Client, statement: str, answers: Answers) -> None:
    """Show an answer, or with EMIT CHANGES on a terminal its changes; nothing of it is left behind."""
    from tureen.commands import under_way
    from tureen.period import period_of
    from tureen.snapshot import Snapshot

    statement, period = period_of(statement) or (statement, None)
    followed = is_followed(statement) and answers.archive is None and answers.form == "table"
    followed = followed and period is None and sys.stdout.isatty()
    query = client.register(statement, wait=under_way.LINE_S, options=None if followed else ONCE)
    try:
        console.show_warnings(query.facts.get("warnings") or ())
        under_way.wait(query)
        if followed:
            from tureen import watching

            with query.changes() as events:
                watching.show(events, rows=answers.rows, as_json=False, stands=False)
            return
        if answers.waits:
            from tureen.commands import catching_up

            catching_up.wait(query)
            catching_up.wait_for_written(client, answers.written)
            answers.written.clear()
        is_table = answers.form == "table"
        form: SnapshotFormat = "arrow" if is_table else cast("SnapshotFormat", answers.form)
        reply = client.fetch(query.handle, form, period, archive=answers.archive)
        if is_table:
            console.show_snapshot(Snapshot.of(reply), answers.rows, stands=False)
        else:
            console.show_reply(reply, form, stands=False)
    finally:
        with contextlib.suppress(UnknownQuery):
            query.unregister()


def _show_listing(listing: Listing, answers: Answers, as_json: bool) -> None:
    """A table, a plan, or a line on what became of what was made, changed or dropped."""
    from tureen.commands import explain

    facts = listing.facts
    if as_json:
        console.show_json(dict(facts))
    elif listing.columns and answers.listings not in (None, "table"):
        _write_rows(listing, answers.listings)
    elif "plan" in facts:
        explain.show(facts["plan"])
    elif listing.columns:
        _show_rows(listing, answers.rows)
        if "source" in facts:
            _show_source(facts["source"])
        if "summary" in facts:
            _show_summary(facts["summary"])
    else:
        what = facts.get("kind") or ("query" if "query_id" in facts else "stream")
        told = f"{what} {facts.get('name') or facts.get('query_id')}"
        if facts.get("skipped"):
            console.err().print(_skipped(what, facts), style="green", markup=False)
            return
        running = "is running" if what == "query" else "is ready"
        pending = "is being dropped" if "ended" in facts else "is pending"
        became = {"RUNNING": running, "GONE": "is gone", "PAUSED": "is paused", "PENDING": pending}
        state = str(facts.get("state"))
        if state == "WRITTEN":
            count = facts["written"]
            noun = "record is" if count == 1 else "records are"
            console.err().print(f"{count:,} {noun} written to the topic {facts['topic']}", style="green")
            return
        if "topic_existed" in facts and "sql" in facts:
            click.echo(f"{facts['sql']};")
        topic = f", read from topic {facts['topic']}" if facts.get("topic") and state == "RUNNING" else ""
        console.err().print(f"{told} {became.get(state, state)}{topic}{_of_topic(facts)}", style="green")
        console.show_warnings(facts.get("warnings") or ())
        if "changes" in facts:
            console.show_altered(facts)
        for name, noun in (("ended", "query"), ("dropped", "view"), ("summaries", "summary")):
            for gone in facts.get(name) or ():
                goes = "is gone" if state == "GONE" else "goes"
                console.err().print(f"{noun} {gone} {goes} with it", style="green")


def _skipped(what: str, facts: Mapping[str, Any]) -> str:
    """What IF EXISTS and IF NOT EXISTS left undone, and why."""
    if facts.get("state") == "GONE":
        return f"there is no {what} {facts['name']}: nothing is dropped"
    other = " with another definition" if facts.get("differs") else ""
    return f"{what} {facts['name']} exists{other}: nothing is created"


def _write_rows(listing: Listing, form: str | None) -> None:
    """All rows as programs read them: ``csv``, ``ndjson``, or ``json``, all that the broker answered."""
    if form == "json":
        console.show_json(dict(listing.facts))
    elif form == "ndjson":
        for row in listing:
            console.show_json(row)
    else:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([listing.columns, *listing.rows])
        console.write_answer(text.getvalue().encode(), "csv")


def _show_source(facts: Mapping[str, Any]) -> None:
    """What the table of its columns does not have: where its rows come from, by which time, and its key."""
    if facts.get("topic") is not None:
        told = [f"topic {facts['topic']}", f"time {facts.get('timestamp') or 'of arrival'}"]
    else:
        told = [f"reads {', '.join(facts.get('reads') or ())}"]
    if facts.get("key"):
        told.append(f"key ({', '.join(facts['key'])})")
    paths = [f"{one['name']} PATH '{one['path']}'" for one in facts["columns"] if one.get("path")]
    told += [", ".join(paths)] if paths else []
    console.err().print(f"{facts['kind']} {facts['name']}: {'; '.join(told)}", style="dim", markup=False)


def _show_summary(facts: Mapping[str, Any]) -> None:
    """What the table of its granularities does not have. error: of an estimate, in rows."""
    settings = facts["settings"]
    size = "" if facts.get("bytes") is None else f", {size_of(facts['bytes'])}"
    console.err().print(
        f"{facts['name']} of {facts['stream']} ({facts['attribute']}): reaches back "
        f"{duration_of_ns(1e6 * facts['reach_ms'])}{size}, theta {settings['theta']:g}, "
        f"{facts['queries']:,} quer{'y' if facts['queries'] == 1 else 'ies'}",
        style="dim",
        markup=False,
    )


def _of_topic(facts: Mapping[str, Any]) -> str:
    """What CREATE found of the topic."""
    if "topic_existed" not in facts:
        return ""
    partitions = facts["partitions"]
    held = f"{partitions:,} partition{'' if partitions == 1 else 's'}"
    if not facts["topic_existed"]:
        return f", which did not exist and was created with {held}"
    records = facts["topic_records"]
    return f", which has {held} and {records:,} record{'' if records == 1 else 's'}"


def _show_rows(listing: Listing, rows: int) -> None:
    shown = listing.rows[:rows]
    numeric = [all(isinstance(row[at], int | float) for row in shown) for at in range(len(listing.columns))]
    cut = [name == "statement" for name in listing.columns]
    console.show_table(listing.columns, shown, numeric, cut if any(cut) else None)
    noun = "row" if len(listing) == 1 else "rows"
    rest = f", the first {rows:,} shown (--rows)" if len(shown) < len(listing) else ""
    console.err().print(f"{len(listing):,} {noun}{rest}", style="dim")


def _converse(client: Client, answers: Answers) -> None:
    """Read, run, print. A refusal does not end it; an end of input does."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (gives the prompt a history)
    console.err().print(HELP, style="dim")
    pending = ""
    while True:
        try:
            line = input(CONTINUED if pending else PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            pending = ""
            continue
        word = line.strip().rstrip("; ").lower()
        if word in ("exit", "quit"):
            return
        if not pending and word in ("help", "sources", "queries"):
            _tell(client, word)
            continue
        pending += line + "\n"
        if not pending.rstrip().endswith(";"):
            pending = pending if pending.strip() else ""
            continue
        statements, pending = split(pending), ""
        for statement in statements:
            try:
                run(client, statement, answers, as_json=False)
            except BrokerUnavailable:
                raise
            except TureenError as error:
                console.show_error(error, registered_text(statement) or statement)


def _tell(client: Client, word: str) -> None:
    """What one of the words of the prompt asks for."""
    from tureen.commands import queries, sources

    if word == "sources":
        sources.show(client.sources())
    elif word == "queries":
        queries.show(client.queries())
    else:
        console.err().print(HELP, style="dim")
