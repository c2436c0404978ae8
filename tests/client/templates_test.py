"""Templates and many queries at once, by HTTP and by topics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

import tureen
from tests.client.conftest import Broker
from tests.kafka import wait_until
from tureen.errors import ParametersRefused, TypeMismatch


@pytest.fixture(params=["http", "topics"])
def way(request: pytest.FixtureRequest, broker: Broker) -> Iterator[tureen.Client]:
    kafka = {"bootstrap.servers": broker.bootstrap} if request.param == "topics" else None
    with tureen.connect(broker.url, kafka=kafka, service_id=broker.service_id) as client:
        yield client


def test_a_template_and_its_parameters(way: tureen.Client, trades: str) -> None:
    query = way.register(
        template=f"SELECT price FROM {trades} WHERE price > ? AND symbol = ?", parameters=[6, "a"]
    )

    assert query.state == "RUNNING"
    assert query.snapshot().rows() == [{"price": 8.0}]


def test_parameters_by_name_and_dates(way: tureen.Client, trades: str) -> None:
    moment = datetime.fromtimestamp(1_007, UTC)
    query = way.register(
        template=f"SELECT price FROM {trades} WHERE at >= :since AND at > :day",
        parameters={"since": moment, "day": date(1970, 1, 1)},
    )

    assert [row["price"] for row in query.snapshot().rows()] == [7.0, 8.0, 9.0]


def test_a_refusal_names_the_placeholder(way: tureen.Client, trades: str) -> None:
    text = f"SELECT price FROM {trades} WHERE price > ? AND at > ?"
    with pytest.raises(ParametersRefused) as refused:
        way.register(template=text, parameters=[5])
    assert (refused.value.line, refused.value.column) == (1, text.rindex("?") + 1)
    with pytest.raises(TypeMismatch) as mismatch:
        way.register(template=text, parameters=[5, "soon"])
    assert (mismatch.value.line, mismatch.value.column) == (1, text.rindex("?") + 1)


def test_a_text_or_a_template_is_asked_for(client: tureen.Client) -> None:
    with pytest.raises(TypeError):
        client.register()
    with pytest.raises(TypeError):
        client.register("SELECT 1", template="SELECT ?", parameters=[1])
    with pytest.raises(TypeError):
        client.register("SELECT 1", parameters=[1])


def test_many_texts_and_templates_with_progress(way: tureen.Client, trades: str) -> None:
    handle = tureen.new_handle()
    text = f"SELECT price FROM {trades} WHERE price = ?"
    many = [tureen.Template(text, [number]) for number in range(5)]
    told: list[int] = []

    queries = way.register_many(
        (
            one
            for one in (
                *many,
                f"SELECT price FROM {trades} WHERE price = 5",
                (tureen.Template(text, [6]), handle),
                tureen.Template(text, []),
            )
        ),
        progress=told.append,
        options={"maintenance": "lazy"},
    )

    assert [query.state for query in queries] == ["RUNNING"] * 7 + ["ERROR"]
    assert queries[6].handle == handle
    assert isinstance(queries[7].error, ParametersRefused)
    prices = [[row["price"] for row in query.snapshot().rows()] for query in queries[:7]]
    assert prices == [[0.0], [1.0], [2.0], [], [4.0], [5.0], [6.0]]  # the fourth price is NULL
    assert told
    assert told == sorted(told)
    assert told[-1] == 8
    standing = {one.query_id: one for one in way.queries()}
    assert standing[queries[0].query_id].facts["maintenance"] == "lazy"
    assert standing[queries[0].query_id].facts["parameters"] == [0]
    for query in queries[:7]:
        query.unregister()
    wait_until(lambda: queries[0].query_id not in {one.query_id for one in way.queries()})
