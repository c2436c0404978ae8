"""Queries put together in Python: what text comes out, and what a broker answers to it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tureen
from engine.language.grammar.words import CLAUSES_REFUSED, CLOCKS, RESERVED
from engine.language.query import Emit, Query
from engine.language.render import render_query
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.client.conftest import Broker
from tests.kafka import wait_until
from tests.language.fixtures import CATALOGUE, SUMMARIES
from tureen.errors import NotSupported, ParametersRefused, QueryError, SyntaxRefused
from tureen.literals import QUOTED, duration, filled, literal, name

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


def test_words_of_the_language_are_quoted_as_names() -> None:
    assert RESERVED | CLOCKS | CLAUSES_REFUSED.keys() <= QUOTED


@given(value=TEXT)
def test_a_string_is_one_constant_whatever_is_in_it(value: str) -> None:
    assert duckdb.execute(f"SELECT {literal(value)}, 1").fetchall() == [(value, 1)]
    assert duckdb.execute(f"SELECT {filled('? = ?', [value, value])}").fetchall() == [(True,)]


@given(called=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1))
def test_a_name_is_one_name_whatever_is_in_it(called: str) -> None:
    assert duckdb.execute(f"SELECT 1 AS {name(called)}").description[0][0] == called


@given(
    value=st.one_of(st.integers(-(2**63) + 1, 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
)
def test_a_number_is_itself(value: float) -> None:
    (found,) = duckdb.execute(f"SELECT {literal(value)}").fetchall()
    assert float(found[0]) == pytest.approx(float(value), rel=1e-15, abs=0)


def test_instants_are_in_utc() -> None:
    moment = datetime(2025, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert literal(moment) == literal(datetime(2025, 6, 1, 10, tzinfo=UTC)) == "'2025-06-01 10:00:00.000'"
    assert literal(date(2025, 6, 1)) == "'2025-06-01'"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", object(), [], {"a": 1}, [object()]])
def test_what_is_no_constant_is_refused(value: object) -> None:
    with pytest.raises(ParametersRefused):
        literal(value)


@pytest.mark.parametrize(
    "piece",
    [
        "price > 1) OR (1 = 1",
        "(price > 1",
        "price > 1]",
        "(price > 1]",
        "price > 1; DROP STREAM orders",
        "city = 'Bern",
        'city = "Bern',
        "price > 1 /* and so on",
        "",
        "-- nothing",
    ],
)
def test_a_piece_is_whole_or_refused(piece: str) -> None:
    orders = tureen.stream("orders")
    for call in (orders.where, orders.select, orders.group_by, orders.agg, orders.order_by, orders.window):
        with pytest.raises(SyntaxRefused):
            call(piece)


def test_quotes_and_comments_hide_what_is_in_them() -> None:
    said = tureen.stream("orders").where("city <> '?;)' AND price > ? -- really?\n AND \"a;\" = ?", 1, "x")
    assert said.sql() == "SELECT * FROM orders WHERE city <> '?;)' AND price > 1  \n AND \"a;\" = 'x'"


def test_values_and_placeholders_are_counted_and_without_values_it_is_a_template() -> None:
    orders = tureen.stream("orders")
    for values in ((1,), (1, 2, 3)):
        with pytest.raises(ParametersRefused):
            orders.where("price BETWEEN ? AND ?", *values)
    with pytest.raises(ParametersRefused):
        orders.where("price > 1", 2)
    assert orders.where("price > ?").sql() == "SELECT * FROM orders WHERE price > ?"


def test_a_call_leaves_what_it_was_made_from() -> None:
    orders = tureen.stream("orders")
    dear = orders.where("price > 50")
    assert dear.where("price > 60") != dear == orders.where("price > 50")
    assert orders.sql() == str(orders) == "SELECT * FROM orders"
    assert len({dear, orders.where("price > 50")}) == 1
    with pytest.raises(AttributeError):
        orders.origin = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda s: s.where(), SyntaxRefused),
        (lambda s: s.select(), SyntaxRefused),
        (lambda s: s.window(), SyntaxRefused),
        (lambda s: s.window(range="1 hour", rows=3), SyntaxRefused),
        (lambda s: s.window(range="an hour"), SyntaxRefused),
        (lambda s: s.window(rows=-1), ParametersRefused),
        (lambda s: s.limit(True), ParametersRefused),
        (lambda s: s.limit("3"), ParametersRefused),
        (lambda s: s.having("n > 1"), SyntaxRefused),
        (lambda s: s.join("orders", on="id"), SyntaxRefused),
        (lambda s: s.join("cities"), SyntaxRefused),
        (lambda s: s.join("cities", on="id", how="cross"), SyntaxRefused),
        (lambda s: s.join("cities", on="id", how="outer"), NotSupported),
        (lambda s: s.join("cities", on="id").window(rows=1), NotSupported),
        (lambda s: s.where("a").tumble("1 hour"), NotSupported),
        (lambda s: s.tumble("1 hour").tumble("1 hour"), NotSupported),
        (lambda s: s.join(s.alias("o").emit_changes(), on="id"), NotSupported),
        (lambda s: s.where("id IN ?", s.istream().select("id")), NotSupported),
        (lambda s: s.except_("returns", on="id"), SyntaxRefused),
        (lambda s: s.union(s.emit_changes()), NotSupported),
        (lambda s: s.emit_changes(""), SyntaxRefused),
        (lambda _: tureen.stream(""), SyntaxRefused),
    ],
)
def test_what_makes_no_query_is_refused_where_it_is_said(call: Any, kind: type[QueryError]) -> None:
    with pytest.raises(kind):
        call(tureen.stream("orders"))


def test_set_operations() -> None:
    flights, weather = tureen.stream("flights"), tureen.stream("weather")
    places = (
        flights.where("delay > 5")
        .select("dest")
        .order_by("delay")
        .limit(3)
        .union(weather.select("dest"), all=True)
    )
    query = parse(places.intersect(weather.select("dest")).emit_changes("places").sql(), CATALOGUE, Limits())
    meant = """SELECT * FROM (SELECT * FROM ((SELECT dest FROM flights WHERE delay > 5 ORDER BY delay LIMIT 3)
    UNION ALL SELECT dest FROM weather) INTERSECT SELECT dest FROM weather) EMIT CHANGES INTO places"""
    same = parse(meant, CATALOGUE, Limits())
    assert isinstance(query, Query)
    assert isinstance(same, Query)
    assert render_query(query) == render_query(same)
    kept = flights.window(range="1 hour").except_("weather", all=True, on=["dest", "day"]).istream()
    assert kept.sql() == (
        "ISTREAM (SELECT * FROM (SELECT * FROM flights [RANGE 1 HOUR] EXCEPT ALL ON (dest, day) "
        "SELECT * FROM weather) AS flights)"
    )
    parse(kept.sql(), CATALOGUE, Limits())


def test_what_becomes_of_changes_is_said_of_the_whole_query_wherever_it_is_said() -> None:
    flights, told = tureen.stream("flights"), {"format": "diff", "snapshot": False}
    late = flights.where("delay > 3").select("dest").limit(9)
    said = flights.dstream().emit_changes("a-b", **told).where("delay > 3").select("dest").limit(9)
    assert said.sql() == late.emit_changes("a-b", **told).dstream().sql()
    for whole in (
        said,
        said.distinct(),
        said.where("dest <> 'ORD'"),
        said.alias("x"),
        said.join("planes", on="a = b"),
    ):
        assert whole.sql().startswith("DSTREAM (SELECT ")
        assert whole.sql().endswith(""") EMIT CHANGES INTO "a-b" WITH (format = 'diff', snapshot = FALSE)""")
        assert whole.sql().count("EMIT") == whole.sql().count("STREAM") == 1
    for query in (
        said,
        flights.tumble("1 hour").istream().emit_changes("c", on_window_close=True, encoding="avro"),
    ):
        bound = parse(query.sql(), CATALOGUE, Limits())
        assert isinstance(bound, Query)
        assert (bound.operator, bound.emit) in (
            ("dstream", Emit("a-b", format="diff", snapshot=False)),
            ("istream", Emit("c", on_close=True, encoding="avro")),
        )


def test_lengths_of_time() -> None:
    assert duration("1 hour  30 minutes") == "1 HOUR 30 MINUTES"
    assert duration(timedelta(days=1)) == "86400000 MILLISECONDS"


def answers(trades: str) -> list[tuple[tureen.Select, list[tuple[Any, ...]]]]:
    t = tureen.stream(trades)
    dear = t.where("price > 7")
    return [
        (dear.window(range="30 minutes").select("price"), [(8.0,), (9.0,)]),
        (t.window(rows=1, partition_by="symbol").select("price"), [(8.0,), (9.0,)]),
        (t.group_by("symbol").agg(n="COUNT(price)").order_by("n DESC").limit(1), [("a", 5)]),
        (t.group_by("symbol").agg(n="COUNT(price)").where("n < ?", 5), [("b", 4)]),
        (t.group_by(dear="price > 7").agg(n="COUNT(*)").having("COUNT(*) = 2"), [(True, 2)]),
        (t.where(price=None).select("symbol"), [("b",)]),
        (t.where(price=[4, 5], symbol="a").select("price"), [(4.0,)]),
        (t.where("price IN ?", dear.select("price")).agg(total="SUM(price)"), [(17.0,)]),
        (t.where(at=datetime.fromtimestamp(1_005, UTC)).select("price"), [(5.0,)]),
        (t.order_by("price DESC NULLS LAST").limit(2, offset=1).select("price"), [(8.0,), (7.0,)]),
        (t.limit(3).agg(n="COUNT(*)"), [(3,)]),
        (t.select("symbol").distinct().order_by("symbol"), [("a",), ("b",)]),
        (t.select(order="symbol", Total="price * 2").where(Total=8), [("a", 8.0)]),
        (t.tumble(timedelta(seconds=5)).group_by("window_start").agg(n="COUNT(*)").select("n"), [(5,)]),
        (t.hop("5 seconds", "10 seconds").agg(n="COUNT(*)").where("n > 1"), [(5,)]),
        (t.session("1 minute").agg(n="COUNT(*)"), [(0,)]),
        (dear.join(t.alias("u"), on="price").select("u.symbol", "price"), [("a", 8.0), ("b", 9.0)]),
        (
            t.alias("l").join(dear.alias("r"), on="l.price = r.price", how="anti").agg(n="COUNT(*)"),
            [(8,)],
        ),
        (
            t.alias("l")
            .where("price > 8")
            .join(t.alias("r"), on="l.symbol = r.symbol AND l.at > r.at", how="asof")
            .select("l.price", before="r.price"),
            [(9.0, 7.0)],
        ),
        (
            t.group_by("symbol").agg(n="COUNT(*)").join(dear.alias("d"), on=["symbol"]).select("n", "price"),
            [(5, 8.0), (5, 9.0)],
        ),
    ]


def test_a_broker_answers_what_was_built(client: tureen.Client, trades: str) -> None:
    built = answers(trades)
    queries = client.register_many(query for query, _ in built)
    assert [query.error for query in queries] == [None] * len(built)
    for query, (said, rows) in zip(queries, built, strict=True):
        assert [tuple(row.values()) for row in query.snapshot()] == rows, said.sql()


def test_it_stands_wherever_a_text_does(client: tureen.Client, trades: str) -> None:
    said = tureen.stream(trades).where("price > ?").select("price")
    assert (
        client.register(tureen.stream(trades).where("price > 8")).sql
        == f"SELECT * FROM {trades} WHERE price > 8"
    )
    assert client.register(template=said, parameters=[8]).snapshot().rows() == [{"price": 9.0}]
    high = tureen.stream(trades).where("price > 7").select("price")
    above = tureen.stream(trades).where("price > 8").select("price")
    assert client.ask(high.except_(above)).rows() == [{"price": 8.0}]
    assert client.ask(high.union(above, all=True).order_by("price")).rows() == [
        {"price": 8.0},
        {"price": 9.0},
        {"price": 9.0},
    ]
    (query,) = client.register_many([(tureen.Template(said, [7]), handle := tureen.new_handle())])
    assert (query.handle, len(query.snapshot())) == (handle, 2)


def test_names_that_need_quotes(broker: Broker, client: tureen.Client) -> None:
    called = f'Odd "{tureen.new_handle()[:8]}"'
    topic = f"odd-{tureen.new_handle()[:8]}"
    client.create(
        f'CREATE STREAM {name(called)} ("order" BIGINT, "Is It?" STRING) WITH (topic = \'{topic}\')'
    )
    broker.produce(topic, [{"order": 1, "Is It?": "it's"}, {"order": 2, "Is It?": "no"}])
    query = client.register(
        tureen.stream(called).where(**{"Is It?": "it's"}).select(name("order"), **{"a;b": name("Is It?")})
    )
    wait_until(lambda: len(query.snapshot()) == 1, what="the row is in")
    assert query.snapshot().rows() == [{"order": 1, "a;b": "it's"}]
    query.unregister()
    client.drop(called)
    assert called not in {one.name for one in client.sources()}


def test_preference_is_about_the_whole_query() -> None:
    estimate = "SUMMARY.Estimate.Count({})".format
    joined = (
        tureen.stream("store1").alias("a").join(tureen.stream("store2").alias("b"), on="a.itemno = b.itemno")
    )
    priorities = f"2 * {estimate('a.itemno')}", estimate("b.itemno")
    wanted = joined.prefer(*priorities, order="asc", fade=0.8, window=timedelta(minutes=1))
    text = wanted.where("a.price > ?", 5).istream().emit_changes(format="diff").sql()
    query = parse(text, CATALOGUE, Limits(), summaries=SUMMARIES)
    assert isinstance(query, Query)
    assert query.emit == Emit(format="diff")
    preference = query.preference
    assert preference is not None
    assert (preference.order, preference.fade, preference.window_ms) == ("asc", 0.8, 60_000)
    assert [one.summary for one in preference.priorities] == ["items1", "items2"]
    around = tureen.stream("store1").limit(3).prefer(estimate("itemno")).where("price > 5").sql()
    assert around.startswith("SELECT * FROM (SELECT * FROM store1 LIMIT 3)")
    assert around.endswith("WHERE price > 5 WITH PREFERENCE desc SUMMARY.Estimate.Count(itemno)")
    with pytest.raises(NotSupported, match="inner query has no preference"):
        tureen.stream("store1").where("itemno IN ?", wanted)
    with pytest.raises(SyntaxRefused, match="no priority"):
        joined.prefer()
    with pytest.raises(SyntaxRefused, match="no order"):
        joined.prefer(estimate("a.itemno"), order="most")  # type: ignore[arg-type]
