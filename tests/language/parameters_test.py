"""A placeholder means the constant that would be written in its place, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.parameters import Parameters, refused_at, written
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.language.fixtures import CATALOGUE, SUMMARIES
from tureen.errors import ParametersRefused, TureenError

PREFERRING = (
    "SELECT price FROM store1 WHERE price > {} "
    "WITH PREFERENCE {} + SUMMARY.Estimate.Count(itemno) FADE FACTOR {} WINDOW {}"
)


def meaning(sql: str) -> object:
    statement = parse(sql, CATALOGUE, Limits(), summaries=SUMMARIES)
    assert isinstance(statement, Query)
    return (repr(statement.scan), repr(statement.stages), repr(statement.preference))


@pytest.mark.parametrize(
    ("sql", "parameters", "plain"),
    [
        ("SELECT dest FROM flights WHERE delay > ?", (5,), "SELECT dest FROM flights WHERE delay > 5"),
        (
            "SELECT dest FROM flights WHERE dest = ?",
            ("it's",),
            "SELECT dest FROM flights WHERE dest = 'it''s'",
        ),
        (
            "SELECT dest FROM flights [RANGE ? MINUTES DOWN TO ? MINUTES] SAMPLE(? DOWN TO ?, ?)",
            (60, 5, 50, 2.5, 7),
            "SELECT dest FROM flights [RANGE 60 MINUTES DOWN TO 5 MINUTES] SAMPLE(50 DOWN TO 2.5, 7)",
        ),
        ("SELECT dest FROM flights WHERE delay > -?", (-5,), "SELECT dest FROM flights WHERE delay > -(-5)"),
        (
            "SELECT dest FROM flights WHERE flight - ? > 0",
            (-5,),
            "SELECT dest FROM flights WHERE flight - (-5) > 0",
        ),
        ("SELECT dest FROM flights WHERE price = ?", (2.5,), "SELECT dest FROM flights WHERE price = 2.5"),
        (
            "SELECT dest FROM flights WHERE delay < ?",
            (1e300,),
            "SELECT dest FROM flights WHERE delay < 1e300",
        ),
        (
            "SELECT dest FROM flights WHERE cancelled = ?",
            (True,),
            "SELECT dest FROM flights WHERE cancelled = TRUE",
        ),
        (
            "SELECT dest FROM flights WHERE flight IN (?,?)",
            (1, None),
            "SELECT dest FROM flights WHERE flight IN (1, NULL)",
        ),
        (
            "SELECT dest FROM flights WHERE ts > ?",
            ("2013-01-31",),
            "SELECT dest FROM flights WHERE ts > '2013-01-31'",
        ),
        (
            "SELECT dest FROM flights WHERE ts > TIMESTAMP ?",
            ("2013-01-31",),
            "SELECT dest FROM flights WHERE ts > TIMESTAMP '2013-01-31'",
        ),
        ("SELECT dest FROM flights [ROWS ?]", (10,), "SELECT dest FROM flights [ROWS 10]"),
        (
            "SELECT dest FROM flights [RANGE ? MINUTES] WHERE dest LIKE ?",
            (10, "a%"),
            "SELECT dest FROM flights [RANGE 10 MINUTES] WHERE dest LIKE 'a%'",
        ),
        (
            "SELECT dest FROM flights WHERE flight > $2 AND flight < $1 OR flight = $1",
            (9, 3),
            "SELECT dest FROM flights WHERE flight > 3 AND flight < 9 OR flight = 9",
        ),
        (
            "SELECT flight::DOUBLE FROM flights WHERE flight > :low AND dest = ':low'",
            {"low": 3},
            "SELECT flight::DOUBLE FROM flights WHERE flight > 3 AND dest = ':low'",
        ),
        (
            "SELECT '?' AS \"?\" FROM flights -- ?\n WHERE /* ? /* ? */ ? */ flight = ?",
            (3,),
            "SELECT '?' AS \"?\" FROM flights WHERE flight = 3",
        ),
        (
            PREFERRING.format("?", "?", "?", "?"),
            (1, 2.5, 0.8, "1 minute"),
            PREFERRING.format(1, 2.5, 0.8, "1 MINUTE"),
        ),
        ("SELECT dest FROM flights", (), "SELECT dest FROM flights"),
    ],
)
def test_a_text_with_parameters_means_the_text_with_constants(
    sql: str, parameters: Parameters, plain: str
) -> None:
    assert meaning(written(sql, parameters)) == meaning(plain)


@pytest.mark.parametrize(
    ("sql", "parameters", "place"),
    [
        ("SELECT dest FROM flights\nWHERE delay > ? AND flight = ?", (5,), (2, 30)),
        ("SELECT dest FROM flights WHERE delay > ?", (5, 6), (1, 40)),
        ("SELECT dest FROM flights", (5,), (1, 1)),
        ("SELECT dest FROM flights WHERE delay > :a", {"a": 1, "b": 2}, (1, 40)),
        ("SELECT dest FROM flights WHERE delay > :a", {}, (1, 40)),
        ("SELECT dest FROM flights WHERE delay > :a", (5,), (1, 40)),
        ("SELECT dest FROM flights WHERE delay > ?", {"a": 5}, (1, 40)),
        ("SELECT dest FROM flights WHERE delay > $2", (5,), (1, 40)),
        ("SELECT dest FROM flights WHERE delay > $2", (5, 6), (1, 40)),
        ("SELECT dest FROM flights WHERE delay > $0", (5,), (1, 40)),
        ("SELECT dest FROM flights WHERE delay > ? AND flight = :a", (5,), (1, 55)),
        ("SELECT dest FROM flights WHERE delay > ?", ([5],), (1, 40)),
        ("SELECT dest FROM flights WHERE delay > ?", ({},), (1, 40)),
        ("SELECT dest FROM flights WHERE delay > ?", (float("nan"),), (1, 40)),
        ("SELECT dest FROM flights WHERE dest = ?", ("a\x00",), (1, 39)),
    ],
)
def test_wrong_parameters_are_refused_at_their_placeholder(
    sql: str, parameters: Any, place: tuple[int, int]
) -> None:
    with pytest.raises(ParametersRefused) as refused:
        written(sql, parameters)
    assert (refused.value.line, refused.value.column) == place
    assert refused.value.hint


@pytest.mark.parametrize(
    ("sql", "parameters", "place"),
    [
        ("SELECT dest FROM flights WHERE delay > ?", ("x",), (1, 40)),
        ("SELECT dest\nFROM flights WHERE flight = ? AND ts > ?", (1, "yesterday"), (2, 40)),
        ("SELECT dest FROM flights WHERE flight = ? AND nothing = ?", (1, 2), (1, 47)),
        ("SELECT dest FROM flights WHERE dest = ? AND nothing = ?", ("a\n\nb", 2), (1, 45)),
        ("SELECT dest FROM flights WHERE flight = ?\nAND", (12345,), (2, 4)),
        ("SELECT dest FROM flights WHERE flight = 1?", (5,), (1, 42)),
        ("SELECT dest FROM flights WHERE dest = N?", ("a",), (1, 40)),
        ("SELECT dest FROM flights [ROWS ?]", ("a",), (1, 32)),
        ("SELECT dest FROM flights WHERE delay > ?", (10**30,), (1, 40)),
    ],
)
def test_a_refusal_names_the_place_among_the_placeholders(
    sql: str, parameters: Parameters, place: tuple[int, int]
) -> None:
    with pytest.raises(TureenError) as refused:
        parse(written(sql, parameters), CATALOGUE, Limits())
    moved = refused_at(refused.value, sql, parameters)
    assert (moved.line, moved.column) == place


@given(st.text(max_size=20), st.sampled_from(["dest = ?", "dest=?||?", "(?)=dest", "dest IN (?,'?',?)"]))
@settings(deadline=None)
def test_a_string_stays_one_string(text: str, form: str) -> None:
    values = (text,) * (form.replace("'?'", "").count("?"))
    try:
        sql = written(f"SELECT flight FROM flights WHERE {form}", values)
        found = meaning(sql)
    except TureenError:
        assert "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text)
        return
    quoted = "'" + text.replace("'", "''") + "'"
    plain = "'?'".join(part.replace("?", quoted) for part in form.split("'?'"))
    assert found == meaning(f"SELECT flight FROM flights WHERE {plain}")


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT dest FROM flights [ROWS ?]", (-1,)),
        ("SELECT dest FROM flights [ROWS -1]", None),
        ("SELECT dest FROM flights [RANGE ? SECONDS]", (-1,)),
        ("SELECT dest FROM flights LIMIT ?", (-1,)),
    ],
)
def test_a_number_below_zero_is_named_as_it_was_given(sql: str, parameters: Parameters | None) -> None:
    with pytest.raises(TureenError, match="found -1"):
        parse(written(sql, parameters), CATALOGUE, Limits())
