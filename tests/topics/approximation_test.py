"""Tags in headers: bounded, ASCII, and read back by clients as they were."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from engine.model.approximation import Approximation, Expected
from engine.model.step import Position
from topics.approximation import HEADER_BYTES_MAX, header_text
from tureen.approximation import Approximation as Read
from tureen.approximation import approximations_from

shares = st.none() | st.floats(0, 1)
tags = st.builds(
    Approximation,
    st.sampled_from(["sample", "window", "synopsis", "shed", "constraint"]),
    st.text(max_size=30),
    st.sampled_from(["declared", "static", "dynamic"]),
    st.floats(0, 1e12),
    st.sampled_from(["percent", "ms", "bytes", "rows"]),
    st.none() | st.floats(0, 1e12),
    st.none() | st.builds(Position, st.integers(0, 9), st.integers(0, 10**9)),
    st.builds(Expected, shares, shares, shares),
    st.booleans(),
)


@given(st.lists(tags, max_size=30), st.integers(64, HEADER_BYTES_MAX))
def test_as_many_as_fit_are_told_and_how_many_others_there_are(given: list[Approximation], most: int) -> None:
    text = header_text(given, most)
    assert len(text) <= most
    assert text.isascii()
    assert text.isprintable()
    told = json.loads(text)
    more = told.pop()["more"] if told and "more" in told[-1] else 0
    assert told == [tag.as_dict() for tag in given[: len(told)]]
    assert len(told) + more == len(given)
    if more:
        whole = json.dumps([tag.as_dict() for tag in given], separators=(",", ":"))
        assert len(whole) > most
    assert len(approximations_from(text)) == len(told)


@given(tags)
def test_clients_read_what_is_told(tag: Approximation) -> None:
    (read,) = approximations_from(header_text([tag], 10_000))
    expected = tag.expected
    since = None if tag.since is None else str(tag.since)
    assert read == Read(
        tag.kind,
        tag.where,
        tag.origin,
        tag.amount,
        tag.unit,
        tag.asked,
        since,
        expected.fp,
        expected.fn,
        expected.error,
        tag.contiguous,
    )
    assert read.facts == tag.as_dict()


def test_nothing_is_the_empty_array_and_what_cannot_be_read_no_tag() -> None:
    assert header_text(()) == "[]"
    for text in (
        None,
        "",
        b"",
        "[]",
        "{",
        '"kind"',
        "7",
        "null",
        '{"kind": "sample"}',
        '[{"more": 2}]',
        "[3]",
    ):
        assert approximations_from(text) == ()
    (newer,) = approximations_from('[{"kind": "lens", "where": "s", "colour": "blue"}]')
    assert (newer.kind, newer.amount, newer.facts["colour"]) == ("lens", 0.0, "blue")
