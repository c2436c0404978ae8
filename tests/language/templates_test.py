"""A query by template is the query that parsing and binding give, a refusal theirs, for any literals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.language.cutting import cut, is_sure
from engine.language.dialect import tokenize
from engine.language.literals import number_literal
from engine.language.places import Place, Text
from engine.language.query import Query
from engine.language.statements import parse
from engine.language.templates import FixedQuery, Template, Templates
from engine.model.limits import Limits
from engine.model.source import Derived, SourceName
from tests.language import fixtures
from tests.language.fuzz import WORDS
from tureen.errors import TureenError

LATE = Derived(SourceName("late"), "SELECT * FROM flights WHERE delay > 5 AND flight = 7", False)
CATALOGUE = {**fixtures.CATALOGUE, "late": LATE}

FORMS = [
    "SELECT carrier FROM flights WHERE delay > {} AND flight = {}",
    "SELECT carrier FROM flights [RANGE 10 MINUTES] WHERE flight >= {} AND flight < {} AND distance <> {}",
    "SELECT flight + {} AS a, price * {}, -{} FROM flights [ROWS 5] WHERE {} < distance",
    "SELECT COUNT(*) AS n FROM flights WHERE carrier IN ({}, {}, {}) OR flight IN ({}, {})",
    "SELECT flight FROM flights WHERE flight = {} OR flight = {} OR flight = {} OR dest = {}",
    "SELECT flight FROM flights WHERE NOT (delay BETWEEN {} AND {} OR dest LIKE {})",
    "SELECT ts FROM flights WHERE ts > {} AND day <= {} AND ts BETWEEN {} AND {}",
    "SELECT ts FROM flights WHERE ts > TIMESTAMP {} AND day = DATE {} AND CAST({} AS TIMESTAMP) < ts",
    "SELECT CASE flight WHEN {} THEN {} ELSE {} END AS c FROM flights WHERE flight > 2 * {} + {}",
    "SELECT CASE WHEN delay > {} THEN {} WHEN delay > {} THEN {} END FROM flights",
    "SELECT ROUND(price, {}), SUBSTRING(dest, {}, {}), COALESCE(flight, {}) FROM flights",
    "SELECT OVERLAY(dest PLACING {} FROM {} FOR {}), POSITION({} IN dest) FROM flights",
    "SELECT flight FROM flights WHERE dest LIKE ANY ({}, {}) AND dest NOT ILIKE ALL (ARRAY[{}, 'x'])",
    "SELECT flight % {}, {} FROM flights WHERE flight IS DISTINCT FROM {} AND {} IS NOT NULL",
    "SELECT carrier FROM flights [ROWS {}] WHERE price > {} AND price <= {}",
    "SELECT carrier FROM flights [RANGE {} SECONDS] WHERE dest || {} = {}",
    "SELECT carrier FROM flights WHERE delay > {} BEGIN NOW - {} END NOW",
    "SELECT carrier FROM flights WHERE dest = {} BEGIN {} END {}",
    'SELECT "a b" + {} AS "n 5" FROM "Odd Names" WHERE "x; DROP" = {} AND "say ""hi""" <> {}',
    "SELECT carrier FROM flights WHERE price = {} AND {} = price AND price <> {} AND distance > {}",
    "SELECT flight::DOUBLE + {}, TRY_CAST({} AS INTEGER) FROM flights WHERE (flight > {}) = cancelled",
    (
        "SELECT carrier, COUNT(*) AS n, SUM(flight + {}) AS s FROM flights WHERE delay > {} GROUP BY car"
        "rier HAVING COUNT(*) > {} ORDER BY n LIMIT {}"
    ),
    "SELECT flight + {} AS a, COUNT(*) FROM flights GROUP BY flight + {}",
    "SELECT DISTINCT carrier FROM flights WHERE delay > {} ORDER BY carrier LIMIT {} OFFSET {}",
    "SELECT APPROX_QUANTILE(delay, {}) FROM flights WHERE flight = {}",
    (
        "SELECT COUNT(*) FILTER (WHERE delay > {}) FROM flights [RANGE {} SECONDS SLIDE {} SECONDS] WHER"
        "E flight < {}"
    ),
    "SELECT carrier FROM (SELECT carrier, delay FROM flights WHERE flight > {}) f WHERE delay > {}",
    (
        "SELECT carrier FROM flights WHERE flight IN (SELECT flight FROM flights WHERE delay > {}) AND d"
        "istance > {}"
    ),
    "WITH late AS (SELECT * FROM flights WHERE delay > {}) SELECT carrier FROM late WHERE flight = {}",
    (
        "SELECT window_start, COUNT(*) FROM TUMBLE(flights, INTERVAL '{}' MINUTE) WHERE delay > {} GROUP"
        " BY window_start"
    ),
    "SELECT carrier FROM flights [PARTITION BY carrier ROWS {}] WHERE delay > {}",
    "SELECT carrier FROM flights [RANGE 1 HOUR WHERE delay > {}] WHERE flight = {}",
    "SELECT carrier FROM flights [ROWS 5 WHERE delay > {}] WHERE flight = {}",
    "SELECT carrier FROM late WHERE delay > {} AND flight = {}",
    (
        "SELECT carrier, {} FROM flights WHERE delay > {} UNION SELECT dest, {} FROM weather WHERE wind > {} "
        "LIMIT {}"
    ),
    (
        "SELECT flight / {} AS a, delay FROM flights WHERE flight = {} EXCEPT ALL ON (a) "
        "SELECT wind + {} AS a FROM weather WHERE wind < {}"
    ),
    (
        "SELECT ts FROM flights WHERE carrier = {} INTERSECT ALL SELECT {} FROM weather "
        "UNION ALL SELECT ts FROM weather"
    ),
    "SELECT flight = {} AS a, flight = {} AS b FROM flights ORDER BY flight = {}",
    (
        "SELECT CASE WHEN flight = {} THEN delay END AS x, MAX(delay) FROM flights GROUP BY CASE WHEN fl"
        "ight = {} THEN delay END"
    ),
    "SELECT 1 FROM flights f JOIN weather w ON f.dest = w.dest AND wind > {} WHERE delay < {} AND w.day = {}",
    "SELECT f.dest FROM flights f, planes p WHERE f.flight + {} = p.flight - {} AND seats > {} AND delay > 2",
    (
        "SELECT model, COUNT(*) AS n FROM flights f LEFT JOIN planes p ON f.flight = p.flight "
        "AND seats IN ({}, {}) WHERE seats > {} OR f.delay > {} GROUP BY model HAVING COUNT(*) > {}"
    ),
    "SELECT fare FROM flights f JOIN fares t ON t.carrier = {} AND f.dest = t.dest WHERE fare > {}",
    "SELECT wind + {} FROM flights f ASOF JOIN weather w ON f.dest = w.dest AND f.ts > w.ts AND wind < {}",
    "SELECT carrier FROM flights WHERE dest IN (SELECT dest FROM weather WHERE wind > {}) AND delay > {}",
    "SELECT 1 FROM flights f JOIN weather w ON {} = {} AND f.dest = {}",
    "SELECT 1 FROM flights f WHERE NOT EXISTS (SELECT 1 FROM weather WHERE wind > delay + {} AND wind < {})",
    "SELECT carrier FROM flights WHERE delay > {} AND flight = {} EMIT CHANGES",
    "SELECT ISTREAM(carrier, {} AS c) FROM TUMBLE(flights, 1 MINUTE) WHERE dest = {} EMIT ON WINDOW CLOSE",
    "DSTREAM (SELECT flight + {} FROM flights WHERE dest = {}) EMIT CHANGES WITH (format = {})",
    'SELECT flight FROM flights WHERE dest = {} EMIT CHANGES INTO "late 5" WITH (snapshot = {})',
    "SELECT dest FROM flights [RANGE 9 SECONDS DOWN TO {} SECONDS] SAMPLE({} DOWN TO 1, {}) WHERE delay > {}",
    "SELECT dest FROM flights WHERE delay > {} WITH (max_fn = {}, weight = {}) EMIT CHANGES",
    (
        "SELECT * FROM store1 WHERE price > {} WITH PREFERENCE {} + SUMMARY.Estimate.Count(itemno) "
        "FADE FACTOR {} WINDOW {} SECONDS WITH (weight = {})"
    ),
    (
        "SELECT a.price + {} FROM store1 a, store2 b WHERE a.itemno = b.itemno AND b.price < {} WITH "
        "PREFERENCE asc SUMMARY.Estimate.Count(b.itemno), "
        "CASE a.itemno WHEN {} THEN {} ELSE items1.Estimate.Count(a.itemno) END"
    ),
    "CREATE SUMMARY x ON flights (delay) WITH GRANULARITY {} s AND COLLAPSE({}, {}) SETTINGS (theta = {})",
    "SELECT nothing FROM flights WHERE delay > {} AND flight = {}",
    "SELECT carrier FROM missing WHERE delay > {}",
]
PREFERRING = (
    "SELECT carrier FROM flights WHERE flight > {} "
    "WITH PREFERENCE 7 * SUMMARY.Estimate.Count(carrier) FADE FACTOR 0.5 WINDOW 90 SECONDS"
)
NUMBERS = [
    *("0", "1", "2", "5", "007", "9", "42", "100", "2147483647", "2147483648", "4294967296"),
    *("9223372036854775807", "9223372036854775808", "99999999999999999999", "1.5", "2.50", "0.1", "10.25"),
    *("1.0", "0.0", ".5", "5.", "1e3", "1E-3", "1.5e+2", "1e400", "0e0", "123456789.987654321"),
    *("1234567890123456789.5", "0x1F", "1_000", "5abc", "- 3", "-3", "--3", "+4", "NULL", "TRUE"),
]
STRINGS = [
    *(
        "''",
        "'a'",
        "'AA'",
        "'it''s'",
        "''''",
        "'5'",
        "'%a_'",
        "'a!%'",
        "'--'",
        "'/*'",
        "'\"'",
        "'\\'",
        "'\n'",
    ),
    *("'2013-01-31'", "'2013-02-30'", "'2013-01-31 12:00:00'", "'2013-01-31T12:00:00.5Z'", "'10 minutes'"),
    *("'é'", "'日本'", "N'a'", "'open", "'a' 'b'", "'\x00'", "'\ud800'"),
]
any_literal = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(STRINGS),
    st.integers(-300, 300).map(str),
    st.decimals(0, 1_000, places=2).map(str),
    st.text("ab'%_5 ", max_size=4).map(lambda text: "'" + text.replace("'", "''") + "'"),
)


def outcome(read: object, text: str) -> str:
    """What a text gives, to the type of every constant and the place of every refusal."""
    try:
        assert callable(read)
        return repr(read(text))
    except TureenError as refusal:
        return repr(refusal.as_dict())


def whole(text: str) -> object:
    return parse(text, CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)


def filled(form: str, literals: list[str]) -> str:
    return form.format(*literals[: form.count("{}")])


@given(
    st.sampled_from(FORMS), st.lists(st.lists(any_literal, min_size=5, max_size=5), min_size=4, max_size=10)
)
def test_any_literals(form: str, rounds: list[list[str]]) -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    for literals in rounds:
        text = filled(form, literals)
        assert outcome(templates.statement, text) == outcome(whole, text)


@given(
    st.sampled_from(FORMS),
    st.sampled_from(
        [st.integers(0, 20).map(str), st.sampled_from(STRINGS[:9]), st.sampled_from(NUMBERS[:18])]
    ),
    st.data(),
)
def test_literals_of_one_kind(form: str, kind: st.SearchStrategy[str], data: st.DataObject) -> None:
    """Many texts of few shapes: equal and different literals, and templates that are used again."""
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    for _ in range(12):
        text = filled(form, data.draw(st.lists(kind, min_size=5, max_size=5)))
        assert outcome(templates.statement, text) == outcome(whole, text)


@given(st.lists(st.sampled_from(FORMS), min_size=1, max_size=3), st.data())
def test_mutated_texts(forms: list[str], data: st.DataObject) -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    for _ in range(8):
        text = filled(data.draw(st.sampled_from(forms)), ["5", "'a'", "7", "1.5", "'b'"])
        start = data.draw(st.integers(0, len(text)))
        middle = data.draw(st.sampled_from(["", "'", '"', "--", "/*", "5", ".", "e", *WORDS]))
        text = text[:start] + middle + text[start + data.draw(st.integers(0, 3)) :]
        for _ in range(2):
            assert outcome(templates.statement, text) == outcome(whole, text)


@pytest.mark.parametrize(
    ("form", "rounds"),
    [
        (
            "SELECT carrier FROM flights WHERE delay > {} AND flight = {}",
            [("1", "2"), ("30", "4"), ("5", "5")],
        ),
        ("SELECT carrier FROM flights WHERE carrier = {}", [("'AA'",), ("'UA'",), ("'it''s'",)]),
        (
            "SELECT carrier FROM flights WHERE ts > {}",
            [("'2013-01-01'",), ("'2014-01-01 10:00'",), ("'2015-1-1'",)],
        ),
        ("SELECT flight FROM flights WHERE flight IN ({}, {})", [("1", "2"), ("3", "4"), ("5", "6")]),
        ("SELECT flight FROM flights WHERE flight > -{}", [("1",), ("2",), ("3",)]),
        ("SELECT flight FROM flights WHERE flight > {}", [("1.5",), ("2.5",), ("3.5",)]),
        (
            "SELECT carrier, SUM(flight) FROM late WHERE delay > {} GROUP BY carrier HAVING COUNT(*) > {}",
            [("11", "2"), ("13", "4"), ("15", "6")],
        ),
        ("SELECT price * {} FROM flights [ROWS 10]", [("1.5",), ("2.5",), ("3.5",)]),
        (
            PREFERRING.replace("WITH", "AND delay > {} WITH"),
            [("1", "2"), ("3", "4"), ("5", "6")],
        ),
        (
            "RSTREAM (SELECT flight FROM flights WHERE flight = {}) EMIT CHANGES WITH (format = 'diff')",
            [("1",), ("2",), ("3",)],
        ),
    ],
)
def test_the_third_text_of_a_shape_is_not_parsed(form: str, rounds: list[tuple[str, ...]]) -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    meanings = [templates.read(form.format(*literals)).template for literals in rounds]
    assert [type(template) for template in meanings] == [FixedQuery, Template, Template]
    assert meanings[1] is meanings[2]
    for literals, template in zip(rounds, meanings, strict=True):
        assert template is not None
        text = form.format(*literals)
        assert repr(template.query(text)) == repr(whole(text))
        assert template.sources == ("flights",)


def test_joins_that_differ_in_constants_share_a_template() -> None:
    form = (
        "SELECT f.dest, seats * {} AS more FROM flights [RANGE 1 HOUR] f "
        "JOIN weather w ON f.dest = w.dest AND wind > {} "
        "LEFT JOIN planes p ON p.flight = f.flight AND p.model = {} WHERE delay < {} AND f.delay < wind + {}"
    )
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    rounds = [("2", "1.5", "'A'", "3", "4"), ("3", "2.5", "'B'", "5", "6"), ("4", "7.5", "'C'", "8", "9")]
    meanings = [templates.read(form.format(*literals)).template for literals in rounds]
    assert [type(template) for template in meanings] == [FixedQuery, Template, Template]
    assert meanings[1] is meanings[2]
    for literals, template in zip(rounds, meanings, strict=True):
        assert template is not None
        assert template.sources == ("flights", "weather", "planes")
        text = form.format(*literals)
        assert repr(template.query(text)) == repr(whole(text))


@pytest.mark.parametrize(
    ("form", "fixed", "free"),
    [
        ("SELECT carrier FROM flights [ROWS {}] WHERE flight > {}", "10", "20"),
        (PREFERRING.replace("0.5", "{}"), "0.5", "0.6"),
        (PREFERRING.replace("7 * ", "{} * "), "7", "8"),
        (PREFERRING.replace("90 ", "{} "), "90", "80"),
        ("SELECT carrier FROM flights [RANGE {} SECONDS] WHERE flight > {}", "10", "20"),
        ("SELECT carrier FROM flights WHERE dest LIKE {} AND flight > {}", "'a%'", "'b%'"),
        ("SELECT ROUND(price, {}) FROM flights WHERE flight > {}", "1", "0"),
        ("DSTREAM (SELECT ROUND(price, {}) FROM flights WHERE flight > {}) EMIT CHANGES", "1", "0"),
        ("SELECT flight FROM flights WHERE flight > 2 * {} AND flight > {}", "1", "2"),
        ("SELECT flight FROM flights WHERE TIMESTAMP '2013-01-01' < ts AND flight + {} > {}", "0", "1"),
    ],
)
def test_what_is_no_scalar_constant_is_part_of_the_shape(form: str, fixed: str, free: str) -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    for first in (fixed, free, fixed, free, fixed, free):
        for second in ("5", "6", "7"):
            text = form.format(first, second)
            assert outcome(templates.statement, text) == outcome(whole, text)


@pytest.mark.parametrize(
    ("form", "rounds"),
    [
        ("flight = {} OR flight = {}", ["1 2", "3 4", "5 5", "6 6", "7 8", "9 9"]),
        ("flight = {} OR flight = {}", ["5 5", "6 6", "7 8", "9 9", "1 2"]),
        ("flight = {} OR flight = 2 * 3", ["1", "2", "6", "7"]),
        ("flight IN ({}, {}, {})", ["1 2 3", "4 5 6", "7 7 8", "9 8 9", "1 1 1"]),
        ("flight = {}", ["2.0", "3.0", "2.5", "4.0"]),
        ("flight > {}", ["9.5", "7.5", "9999999999999.5", "8.5"]),
        ("price = {}", ["1.50", "2.50", "1.55", "2.555"]),
        ("day = {}", ["'2013-01-31'", "'2013-01-30'", "'2013-01-31T12:00'", "'2013-01-32'", "'x'"]),
        ("distance = -{}", ["2147483647", "2147483646", "2147483648", "2147483649"]),
        ("flight + -{} > 0", ["2147483649", "2147483650", "2147483648", "2147483651"]),
        ("{} = {}", ["1 1", "2 2", "1 2", "2 1"]),
    ],
)
def test_literals_that_change_what_a_text_means_are_not_taken_for_others(
    form: str, rounds: list[str]
) -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    for literals in rounds + rounds:
        text = "SELECT flight FROM flights WHERE " + form.format(*literals.split())
        assert outcome(templates.statement, text) == outcome(whole, text)


def test_where_changes_go_is_part_of_the_shape() -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    tails = ["", " EMIT CHANGES", " EMIT CHANGES INTO a", " EMIT CHANGES INTO b"]
    tails += [f" EMIT CHANGES WITH (format = '{name}')" for name in ("diff", "debezium", "upsert", "x")]
    for flight in range(5):
        for tail in tails:
            text = f"SELECT carrier FROM flights WHERE flight = {flight}{tail}"
            assert outcome(templates.statement, text) == outcome(whole, text)
            if flight > 1 and "'x'" not in tail:
                assert isinstance(templates.read(text).template, Template)


def test_what_a_text_allows_is_part_of_the_shape() -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    said = [("", "", ""), (" DOWN TO 1 MINUTE", "", ""), (" DOWN TO 2 MINUTES", " SAMPLE(50 DOWN TO 5)", "")]
    said += [("", " SAMPLE(50)", ""), ("", " SAMPLE(50, 1)", ""), ("", " SAMPLE(50, 2)", "")]
    said += [
        ("", "", f" WITH ({one})") for one in ("max_fn = 0.1", "max_fn = 0.2", "weight = 3", "max_fp = 1")
    ]
    for flight in range(5):
        for window, sample, allowed in said:
            text = (
                f"SELECT carrier FROM flights [RANGE 1 HOUR{window}]{sample} WHERE flight = {flight}{allowed}"
            )
            template, query = templates.read(text).template, whole(text)
            assert template is not None
            assert isinstance(query, Query)
            assert repr(template.query(text)) == repr(query)
            assert template.has_down_to == query.has_down_to == ("DOWN" in text)
            assert (template.tolerance, template.weight) == (query.tolerance, query.weight)
            if flight > 1:
                assert isinstance(template, Template)


def test_a_text_that_is_too_long_is_refused_though_its_template_is_known() -> None:
    limits = Limits(sql_bytes_max=100)
    templates = Templates(CATALOGUE, limits)
    form = "SELECT carrier FROM flights WHERE dest = '{}'"
    for text in (form.format("a"), form.format("b"), form.format("c" * 100), form.format("é" * 40)):
        assert outcome(templates.statement, text) == outcome(lambda sql: parse(sql, CATALOGUE, limits), text)


def test_templates_are_bounded() -> None:
    templates = Templates(CATALOGUE, Limits(), summaries=fixtures.SUMMARIES)
    for number in range(3_000):
        templates.read(f"SELECT carrier AS c{number}x FROM flights WHERE flight > 5")
    assert len(templates._shapes) <= 2_048


@given(
    st.one_of(st.lists(st.sampled_from([*WORDS, *NUMBERS, *STRINGS]), max_size=12), st.lists(any_literal)),
    st.sampled_from(["", " ", "="]),
)
def test_a_cut_text_has_the_tokens_that_the_tokenizer_finds(words: list[str], glue: str) -> None:
    text = glue.join(words)
    found = cut(text)
    if found is None or not is_sure(found):
        return
    tokens = {token.start: token for token in tokenize(Text(text))}
    assert found.with_texts(found.texts) == text
    for offset, number in found.places().items():
        literal, written = found.literals[number], tokens[offset].text
        if tokens[offset].token_type.name == "STRING":
            assert literal.value == written
        else:
            assert tokens[offset].token_type.name == "NUMBER"
            assert literal == number_literal(written, False, Place(text, offset))
    other = found.with_texts(["7" * len(each) for each in found.texts])
    kinds = [token.token_type for token in tokenize(Text(other))]
    assert kinds == [token.token_type for token in tokenize(Text(text))]


def test_only_queries_have_meanings() -> None:
    templates = Templates({}, Limits())
    for _ in range(3):
        read = templates.read("CREATE STREAM s (a INTEGER) RETAIN 7 DAYS")
        assert read.template is None
        assert not isinstance(read.statement, Query)
