"""The caret stands under the column, whatever the line looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.language.statements import parse
from engine.model.limits import Limits
from tests.language.fixtures import CATALOGUE
from tureen.carets import WIDTH_MAX, render
from tureen.errors import QueryError, SyntaxRefused

NAMES = ("carrier", "delay", "dest", "delay", "carrier")
FORM = (
    "SELECT", "{0}", ",", "{1}", "*", "2", "AS", "twice", ",", "'ä,\t😀'", "FROM", "flights",
    "[", "ROWS", "5", "]", "WHERE", "{2}", "<>", "'\u3042\n\u3044'", "AND", "{3}", ">", "3",
    "ORDER", "BY", "{4}",
)  # fmt: skip
SPACES = st.lists(
    st.sampled_from([" ", "\n", "\t", "\r\n", "/* 😀 \u6f22\n*/", "-- \u00e9\u0301 ' \u3042\n", "  "]),
    min_size=1,
    max_size=3,
).map("".join)


def test_the_caret_stands_under_the_column() -> None:
    error = SyntaxRefused("wrong", line=2, column=3, hint="right")
    assert render("first\nsecond", error).split("\n") == [
        "second",
        "  ^",
        "wrong (line 2, column 3)",
        "hint: right",
    ]


def test_a_long_line_is_cut_around_the_column() -> None:
    line = "a" * 500 + "X" + "b" * 500
    shown, caret, _ = render(line, SyntaxRefused("wrong", line=1, column=501)).split("\n")
    assert len(shown) == WIDTH_MAX + 2
    assert shown[caret.index("^")] == "X"


def test_control_characters_take_one_place() -> None:
    shown, caret, _ = render("\t\x1bX", SyntaxRefused("wrong", line=1, column=3)).split("\n")
    assert shown == "  X"
    assert caret == "  ^"


def test_an_error_without_a_place_is_shown_alone() -> None:
    assert render("text", SyntaxRefused("wrong")) == "wrong"
    assert render("text", SyntaxRefused("wrong", line=9, column=1)) == "wrong (line 9, column 1)"


@given(
    st.lists(SPACES, min_size=len(FORM), max_size=len(FORM)),
    st.sets(st.integers(0, len(NAMES) - 1), min_size=1),
    st.sampled_from(["nowhere", '"\u6f22 😀"', "ünïcode_x"]),
)
def test_an_unknown_name_is_pointed_at_wherever_it_stands(
    spaces: list[str], wrong: set[int], name: str
) -> None:
    """Columns are characters, whatever their width and however many bytes they take. Of several wrong
    names one is told."""
    names = [name if number in wrong else one for number, one in enumerate(NAMES)]
    sql, places = "", set()
    for space, word in zip(spaces, FORM, strict=True):
        sql += space
        if word.startswith("{") and int(word[1]) in wrong:
            places.add(len(sql))
        sql += word.format(*names)
    with pytest.raises(QueryError) as raised:
        parse(sql, CATALOGUE, Limits())
    error = raised.value
    assert error.code == "unknown_column"
    assert error.line is not None
    assert error.column is not None
    lines = sql.split("\n")
    assert sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1 in places
