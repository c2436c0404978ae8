"""``tureen translate``: statements of other systems, as this language has them."""

from __future__ import annotations

from pathlib import Path

import click

from engine.language.query import CreateFromQuery, CreateStream
from engine.language.statements import parse
from engine.language.translation.dialects import DIALECTS, DialectName
from engine.language.translation.translate import translate as translated
from engine.model.limits import Limits
from engine.model.source import Derived, Stream
from tureen import console
from tureen.errors import TureenError
from tureen.statements import keyword, placed

_UNCHECKED = (
    "names, types and functions are not checked, so what is printed may still be refused: give the CREATE "
    "statements of your streams with --schema"
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--from", "dialect", type=click.Choice(DIALECTS), required=True, help="Whose statements they are."
)
@click.option(
    "--schema",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="CREATE statements of this language: names and types are checked too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each statement.")
def translate(file: Path, dialect: DialectName, schema: Path | None, as_json: bool) -> None:
    """Translate statements of Flink SQL, ksqlDB, Materialize, RisingWave or PostgreSQL.

    FILE holds one or more, divided by semicolons; `-` reads stdin. Each is printed as it is to be written
    here; what is to be seen to goes to stderr. One that has no counterpart is told with its line and column
    in the file, why, and what to write, and the exit code is 1; the others are printed all the same.

    \b
    tureen translate --from ksqldb queries.sql > ours.sql
    tureen translate --from flink --schema streams.sql queries.sql
    """
    text = console.stdin_text() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    catalogue = None if schema is None else _catalogue(schema.read_text(encoding="utf-8-sig"))
    refused = 0
    if catalogue is None:
        console.err().print(_UNCHECKED, style="yellow", markup=False)
    for one in placed(text):
        try:
            found = translated(one.sql, dialect, Limits(), catalogue)
        except TureenError as error:
            one.place(error)
            console.show_error(error, text, as_json)
            refused += 1
            continue
        if catalogue is not None and isinstance(found.statement, CreateStream | CreateFromQuery):
            _add(catalogue, found.statement)
        if as_json:
            console.show_json({"sql": found.sql, "remarks": found.remarks, "same": found.sql == one.sql})
            continue
        click.echo(f"{found.sql};")
        for remark in found.remarks:
            console.err().print(f"line {one.line}: {remark}", style="yellow", markup=False)
    if refused:
        raise SystemExit(1)


def _catalogue(text: str) -> dict[str, Stream | Derived]:
    """What CREATE statements make. Raises TureenError, with its place in the text."""
    found: dict[str, Stream | Derived] = {}
    for one in placed(text):
        if keyword(one.sql) != "CREATE":
            continue
        try:
            statement = parse(one.sql, found, Limits())
        except TureenError as error:
            one.place(error)
            console.about(text)
            raise
        if isinstance(statement, CreateStream | CreateFromQuery):
            _add(found, statement)
    return found


def _add(catalogue: dict[str, Stream | Derived], statement: CreateStream | CreateFromQuery) -> None:
    made = statement.stream if isinstance(statement, CreateStream) else statement.derived
    catalogue[made.name] = made
