"""Data and helpers that ``reference_page_test.py`` shares with other tests."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from engine.language.query import CreateFromQuery, CreateStream, CreateSummary
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Derived, SourceName, Stream
from tests.language.fixtures import stream_of
from tureen.period import period_of

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"


def catalogue() -> dict[str, Stream | Derived]:
    """Streams, and the tables and views that the page's examples make."""
    found: dict[str, Stream | Derived] = {}
    for name, columns, options in (
        (
            "flights",
            "carrier STRING, dest STRING, tail STRING, delay DOUBLE, departed TIMESTAMP NOT NULL",
            "timestamp = 'departed'",
        ),
        ("weather", "airport STRING, wind DOUBLE, measured TIMESTAMP NOT NULL", "timestamp = 'measured'"),
        ("ticks", "price DOUBLE", "topic = 't'"),
    ):
        found[name] = replace(stream_of(columns, options)["t"], name=SourceName(name))
    for sql in EXAMPLES:
        if re.match(r"CREATE (TABLE|STREAM) [^(]*\(", sql) and not re.search(" AS| FROM ", sql.split("(")[0]):
            table = parse(sql, found, Limits())
            assert isinstance(table, CreateStream)
            found.setdefault(table.stream.name, table.stream)
        if re.match(r"CREATE .*(VIEW|(STREAM|TABLE) \w+ AS)", sql):
            statement = parse(sql, found, Limits())
            assert isinstance(statement, CreateFromQuery)
            found[statement.derived.name] = statement.derived
    return found


def examples(page: Path) -> list[str]:
    """Its statements, each without the period that it may end with."""
    found = re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [(period_of(sql) or (sql, None))[0] for sql in found]


EXAMPLES = examples(PAGE)

STREAMS = catalogue()

SUMMARIES = {
    made.definition.name: made.definition
    for sql in EXAMPLES
    if sql.startswith("CREATE SUMMARY") and isinstance(made := parse(sql, STREAMS, Limits()), CreateSummary)
}
