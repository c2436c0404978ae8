"""A DROP with all that reads it goes on when it takes longer than its request waits."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import tureen
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import free_ports, wait_until
from tureen.protocol import query_id

QUERIES = 20


@pytest.fixture(scope="module")
def hasty(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that waits for the outcome of nothing: whatever is dropped is PENDING at first."""
    directory = tmp_path_factory.mktemp("drops") / "data"
    (port,) = free_ports(1)
    with broker(kafka, directory, "drops", OUTCOME_WAIT_MS=0, POSTGRES_PORT=port) as one:
        yield one


@pytest.fixture
def read(hasty: Broker, name: str) -> str:
    """A stream that a view and queries over both read."""
    texts = (stream_sql(name), f"CREATE VIEW {name}_a AS SELECT id, v FROM {name} WHERE v > 1")
    for place, text in enumerate(texts):
        assert hasty.run(text)[0] in (201, 202)
        wait_until(lambda count=place + 1: len(there(hasty, name)) == count, what="it stands")
    for number in range(QUERIES):
        hasty.register(f"SELECT id FROM {name}{'_a' * (number % 2)} WHERE v > {number}")
    wait_until(lambda: hasty.source(name)["queries"] == QUERIES, what="they stand")
    return name


def there(one: Broker, name: str) -> list[str]:
    sources = one.http.get("/sources").json()["sources"]
    return [each["name"] for each in sources if each["name"].startswith(name) and each["state"] == "RUNNING"]


def test_drop_that_takes_long_goes_on_after_its_answer(hasty: Broker, read: str) -> None:
    first = hasty.http.delete(f"/sources/{read}", params={"cascade": "true"})
    assert (first.status_code, first.json()["state"]) == (202, "PENDING")
    wait_until(lambda: not there(hasty, read), what="nobody asks again, and all of it goes")
    assert hasty.http.get("/queries", params={"source": read}).json()["queries"] == []
    assert (
        hasty.http.delete(f"/sources/{read}", params={"cascade": "true"}).json()["code"] == "unknown_source"
    )


def test_who_asks_again_joins_the_drop(hasty: Broker, read: str) -> None:
    answers = [hasty.http.delete(f"/sources/{read}", params={"cascade": "true"}) for _ in range(5)]
    assert {one.status_code for one in answers} <= {202, 400}, [one.text for one in answers]
    wait_until(lambda: not there(hasty, read), what="it is gone")


@pytest.mark.parametrize("way", ["drop", "execute", "if exists"])
def test_client_returns_once_all_is_gone(hasty: Broker, read: str, way: str) -> None:
    with tureen.connect(hasty.url) as client:
        if way == "drop":
            told = client.drop(read, cascade=True)
            assert len(told.query_ids) == QUERIES
        else:
            exists = "IF EXISTS " if way == "if exists" else ""
            facts = client.execute(f"DROP STREAM {exists}{read} CASCADE").facts
            assert (facts["state"], len(facts["ended"])) == ("GONE", QUERIES)
        assert not there(hasty, read)


def test_client_of_postgres_is_told_once_all_is_gone(hasty: Broker, read: str) -> None:
    port = int(hasty.settings["POSTGRES_PORT"])
    with psycopg.connect(
        host="127.0.0.1", port=port, dbname="tureen", user="x", autocommit=True
    ) as connection:
        connection.execute(f"DROP STREAM {read} CASCADE")
        assert not there(hasty, read)


def test_materialized_view_goes_with_its_query(hasty: Broker, read: str) -> None:
    view = f"{read}_kept"
    assert hasty.run(f"CREATE MATERIALIZED VIEW {view} AS SELECT id FROM {read}")[0] in (201, 202)
    wait_until(lambda: view in there(hasty, read) and queries_named(hasty, view), what="it is kept")
    with tureen.connect(hasty.url) as client:
        assert client.execute(f"DROP MATERIALIZED VIEW {view}").facts["state"] == "GONE"
    assert view not in there(hasty, read)
    assert not queries_named(hasty, view)
    hasty.http.delete(f"/sources/{read}", params={"cascade": "true"})


def queries_named(one: Broker, name: str) -> list[str]:
    listed = one.http.get("/queries?limit=1000").json()["queries"]
    return [each["query_id"] for each in listed if each.get("name") == name and each["state"] == "RUNNING"]


def test_refusal_is_told_at_once(hasty: Broker, read: str) -> None:
    refused = hasty.http.delete(f"/sources/{read}")
    assert refused.status_code == 409
    given = query_id(hasty.register(f"SELECT id FROM {read}"))
    wait_until(lambda: hasty.state(given) == "RUNNING", what="it stands")
    hasty.http.delete(f"/sources/{read}", params={"cascade": "true"})
