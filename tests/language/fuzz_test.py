"""Any text gives a statement or an error of ours with a place in the text, in bounded time."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.statements import parse
from engine.model.limits import Limits
from tests.language.fixtures import CATALOGUE, SUMMARIES
from tests.language.fuzz import SEEDS, WORDS
from tests.language.rendering import render_statement
from tests.strategies import examples
from tureen.carets import render
from tureen.errors import LimitExceeded, SyntaxRefused, TureenError

LONG_S = 5.0


def check(sql: str) -> None:
    began = time.process_time()
    refusal: TureenError | None = None
    try:
        render_statement(parse(sql, CATALOGUE, Limits(), summaries=SUMMARIES))
    except TureenError as error:
        refusal = error
    assert time.process_time() - began < LONG_S
    if refusal is None:
        return
    lines = sql.split("\n")
    assert refusal.line is not None
    assert refusal.column is not None
    assert 1 <= refusal.line <= len(lines)
    assert 1 <= refusal.column <= len(lines[refusal.line - 1]) + 1
    assert len(render(sql, refusal)) < 2_000


@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["", " "]))
@settings(max_examples=examples(200), deadline=None)
def test_words_in_any_order(words: list[str], glue: str) -> None:
    check(glue.join(words))


@given(st.text(max_size=200))
@settings(deadline=None)
def test_any_text(text: str) -> None:
    check(text)


@given(st.sampled_from(SEEDS), st.data())
@settings(max_examples=examples(250), deadline=None)
def test_mutated_statements(seed: str, data: st.DataObject) -> None:
    text = seed
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 8))
        middle = data.draw(st.one_of(st.sampled_from(["", *WORDS]), st.text(string.printable, max_size=3)))
        text = text[:start] + middle + text[start + size :]
    check(text)


def test_a_comment_ends_with_any_end_of_its_line() -> None:
    for end in ("\n", "\r", "\r\n"):
        parse(f"SELECT 'a--b' -- it's{end} FROM flights", CATALOGUE, Limits())
        with pytest.raises(SyntaxRefused) as refused:
            parse(f'SELECT 1 --{end} FROM "flights', CATALOGUE, Limits())
        assert refused.value.message == "this quoted name does not end"


DEEP = 20_000
NESTED = {
    "brackets": "SELECT " + "(" * DEEP + "1" + ")" * DEEP + " FROM flights",
    "open brackets": "SELECT " + "(" * DEEP,
    "not": "SELECT * FROM flights WHERE " + "NOT " * (DEEP // 2) + "TRUE",
    "minus": "SELECT " + "- " * DEEP + "1 FROM flights",
    "plus": "SELECT " + "1+" * DEEP + "1 FROM flights",
    "casts": "SELECT 1" + "::INT" * (DEEP // 2) + " FROM flights",
    "case": "SELECT " + "CASE WHEN TRUE THEN " * 1_000 + "1" + " END" * 1_000 + " FROM flights",
    "case of case": "SELECT "
    + "CASE " * 60
    + "1"
    + " WHEN 1 THEN 1 WHEN 2 THEN 2 END" * 60
    + " FROM flights",
    "between": "SELECT " + "(" * 60 + "TRUE" + " BETWEEN cancelled AND TRUE)" * 60 + " FROM flights",
    "distinct from": "SELECT "
    + "(" * 60
    + "cancelled"
    + " IS DISTINCT FROM cancelled)" * 60
    + " FROM flights",
    "is true": "SELECT cancelled" + " IS TRUE" * 5_000 + " FROM flights",
    "in of in": "SELECT "
    + "(" * 60
    + "cancelled"
    + " IN (cancelled, TRUE, cancelled))" * 60
    + " FROM flights",
    "functions": "SELECT " + "ABS(" * 5_000 + "1" + ")" * 5_000 + " FROM flights",
    "concatenation": "SELECT " + "dest||" * 9_000 + "dest FROM flights",
    "window brackets": "SELECT * FROM flights BEGIN " + "(" * DEEP + "NOW",
    "comments": "SELECT " + "/*" * DEEP,
    "quotes": "SELECT " + "'" * (2 * DEEP + 1),
    "window of brackets": "SELECT * FROM flights " + "[" * DEEP,
    "subqueries": "SELECT * FROM (" * 2_000 + "SELECT * FROM flights" + ")" * 2_000,
    "brackets of joins": "SELECT 1 FROM " + "(" * 2_000 + "flights",
    "joins in brackets": "SELECT 1 FROM " + "(flights CROSS JOIN " * 2_000 + "flights" + ")" * 2_000,
    "joins": "SELECT 1 FROM flights f0" + "".join(f" JOIN flights f{n + 1} ON TRUE" for n in range(2_000)),
    "joins of joins": "WITH a0 AS (SELECT dest AS x FROM flights), "
    + ", ".join(f"a{n + 1} AS (SELECT b.x || c.x AS x FROM a{n} b JOIN a{n} c USING (x))" for n in range(40))
    + " SELECT x FROM a40",
    "open subqueries": "SELECT * FROM (" * 2_000,
    "in of queries": "SELECT dest FROM flights WHERE dest IN (" * 1_000,
    "subqueries that double": "WITH a0 AS (SELECT distance AS x FROM flights), "
    + ", ".join(f"a{n + 1} AS (SELECT x + x AS x FROM a{n})" for n in range(60))
    + " SELECT x FROM a60",
    "subqueries that grow": "WITH a0 AS (SELECT distance AS x FROM flights), "
    + ", ".join(f"a{n + 1} AS (SELECT x + 1 AS x FROM a{n})" for n in range(800))
    + " SELECT x FROM a800",
    "joins that double": "WITH a0 AS (SELECT dest AS x FROM flights), "
    + ", ".join(
        f"a{n + 1} AS (SELECT x FROM a{n} WHERE x IN (SELECT x FROM a{n}) AND x IN (SELECT x FROM a{n}))"
        for n in range(40)
    )
    + " SELECT x FROM a40",
    "joins that nest": "WITH a0 AS (SELECT dest AS x FROM flights), "
    + ", ".join(
        f"a{n + 1} AS (SELECT dest AS x FROM flights WHERE dest IN (SELECT x FROM a{n}))" for n in range(30)
    )
    + " SELECT x FROM a30",
    "numbers that nest": "SELECT " + "ROW_NUMBER() OVER (ORDER BY " * 1_000,
    "aggregates that nest": "SELECT " + "SUM(" * 5_000 + "1" + ")" * 5_000 + " FROM flights",
    "limits of windows": "WITH a0 AS (SELECT dest FROM flights LIMIT 5), "
    + ", ".join(f"a{n + 1} AS (SELECT dest FROM a{n} LIMIT 5)" for n in range(400))
    + " SELECT dest FROM a400",
    "too long": "SELECT '" + "x" * 70_000 + "' FROM flights",
    "too long in bytes": "SELECT '" + "é" * 40_000 + "' FROM flights",
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_and_long_texts_are_refused_quickly(name: str) -> None:
    with pytest.raises(TureenError):
        parse(NESTED[name], CATALOGUE, Limits())
    check(NESTED[name])


@pytest.mark.parametrize(
    "condition",
    [
        " OR ".join(f"flight = {n}" for n in range(2_500)),
        " AND ".join(f"delay <> {n}.5" for n in range(2_500)),
        "flight IN (" + ", ".join(str(n) for n in range(9_000)) + ")",
        "dest IN (" + ", ".join(f"'d{n}'" for n in range(6_000)) + ")",
        " OR ".join(f"(flight = {n} AND delay < {n})" for n in range(1_200)),
    ],
)
def test_long_conditions_are_served(condition: str) -> None:
    check(f"SELECT * FROM flights WHERE {condition}")
    parse(f"SELECT * FROM flights WHERE {condition}", CATALOGUE, Limits())


def test_nesting_up_to_the_limit_is_served() -> None:
    limits = Limits()
    depth = limits.nesting_max
    parse("SELECT " + "(" * depth + "1" + ")" * depth + " FROM flights", CATALOGUE, limits)
    with pytest.raises(LimitExceeded) as caught:
        parse("SELECT " + "(" * (depth + 1) + "1" + ")" * (depth + 1) + " FROM flights", CATALOGUE, limits)
    assert caught.value.limit == "nesting_max"
    assert caught.value.column == len("SELECT ") + depth + 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + ", ".join(f"SUM(delay + {n})" for n in range(900)) + " FROM flights",
        "SELECT COUNT(*) FROM flights GROUP BY " + ", ".join(f"distance % {n + 1}" for n in range(100)),
        "SELECT "
        + ", ".join(f"(distance % 7 + {n}) * 2" for n in range(900))
        + " FROM flights GROUP BY distance % 7",
        "SELECT distance % 7 + " + " + ".join(["distance % 7"] * 120) + " FROM flights GROUP BY distance % 7",
        "SELECT "
        + ", ".join("distance + 1" for _ in range(900))
        + " FROM flights ORDER BY "
        + ", ".join(f"distance + {n}" for n in range(100)),
        "WITH a0 AS (SELECT distance AS x FROM flights), "
        + ", ".join(f"a{n + 1} AS (SELECT x FROM a{n} WHERE x <> {n})" for n in range(800))
        + " SELECT x FROM a800",
    ],
)
def test_large_queries_are_served(sql: str) -> None:
    check(sql)
    parse(sql, CATALOGUE, Limits())
