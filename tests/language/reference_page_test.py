"""The language reference says what the code does: functions are the catalogue's, examples are served."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from engine.language.functions import ALIASES, FUNCTIONS
from engine.language.statements import parse
from engine.limits import Limits
from tests.language.fixtures import stream_of
from tureen.errors import TureenError

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
BEGIN, END = "<!-- functions: begin -->\n", "<!-- functions: end -->"


def table() -> str:
    rows = [
        f"| <code>{function.usage.replace('|', '&#124;')}</code> | {function.doc} |"
        for function in FUNCTIONS.values()
    ]
    return "\n".join(["| call | gives |", "|---|---|", *rows]) + "\n"


def test_the_table_of_functions_is_the_catalogue() -> None:
    """``TUREEN_UPDATE_GOLDEN=1`` writes it anew."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    found, after = rest.split(END)
    if os.environ.get("TUREEN_UPDATE_GOLDEN") == "1":
        PAGE.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
        return
    assert found == table()


def test_other_names_are_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{alias}`" in page for alias in ALIASES)


STREAM = {
    "flights": stream_of("carrier STRING, dest STRING, delay DOUBLE, departed TIMESTAMP")["t"],
}
EXAMPLES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("sql", EXAMPLES)
def test_examples_are_served(sql: str) -> None:
    parse(sql, STREAM, Limits())


REFUSED = {
    "JOIN": "SELECT * FROM flights JOIN flights ON TRUE",
    "GROUP BY": "SELECT dest FROM flights GROUP BY dest",
    "SUM": "SELECT SUM(delay) FROM flights",
    "DISTINCT": "SELECT DISTINCT dest FROM flights",
    "ORDER BY": "SELECT * FROM flights ORDER BY delay",
    "LIMIT": "SELECT * FROM flights LIMIT 1",
    "EMIT": "SELECT * FROM flights EMIT CHANGES",
    "NOW": "SELECT * FROM flights WHERE departed > CURRENT_TIMESTAMP",
    "INTERVAL": "SELECT departed + INTERVAL '1 day' FROM flights",
    "parameter": "SELECT * FROM flights WHERE delay > :x",
    "two": "SELECT * FROM flights; SELECT * FROM flights",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_page_calls_refused_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(TureenError) as caught:
        parse(REFUSED[name], STREAM, Limits())
    assert caught.value.code == "not_supported"
    assert caught.value.hint
    assert caught.value.column
