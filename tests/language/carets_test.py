"""The caret stands under the column, whatever the line looks like."""

from __future__ import annotations

from tureen.carets import WIDTH_MAX, render
from tureen.errors import SyntaxRefused


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
