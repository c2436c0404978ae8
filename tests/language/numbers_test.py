"""Numbers with an exponent and the signs behind them, with blanks around them or without."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.language.dialect import tokenize
from engine.language.places import Text

_NUMBERS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{0,2})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
_TERMS = st.tuples(_NUMBERS | st.sampled_from(["x", "(2e1)", "'1e0+2'", "-3e1"]), st.sampled_from("+-*/,"))


@given(st.lists(_TERMS, min_size=1, max_size=8))
def test_blanks_around_operators_change_nothing(terms: list[tuple[str, str]]) -> None:
    pieces = [piece for term in terms for piece in term]
    # Two signs side by side would begin a comment.
    tight = "".join(pieces).replace("--", "+-")
    wide = " ".join(pieces).replace("- -", "+ -")
    found, wanted = tokenize(Text(tight)), tokenize(Text(wide))
    assert [(token.token_type, token.text) for token in found] == [
        (token.token_type, token.text) for token in wanted
    ]
    for token in found:
        assert tight[token.start : token.end + 1].strip("'") == token.text
