"""A broker with its doors open, both tokens set, and relations of every kind."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tests.registry import TestRegistry

TOKEN = "a-token-of-more-than-16-characters"
READ_TOKEN = "another-token-that-only-reads"

COLUMNS = (
    "id BIGINT, small INTEGER, b BOOLEAN, v DOUBLE, d DECIMAL(12, 2), s STRING, day DATE, at TIMESTAMP, "
    "u UUID, raw BYTES, j JSON, a ARRAY<BIGINT>, n STRUCT<x BIGINT, y STRING>"
)
RECORDS: list[dict[str, Any]] = [
    {
        "id": 1,
        "small": -7,
        "b": True,
        "v": 1.5,
        "d": "12345.60",
        "s": 'a "quoted", text\twith\nlines \\ and é',
        "day": "2013-01-31",
        "at": "2013-01-31T09:15:00.123Z",
        "u": "12345678-1234-5678-1234-567812345678",
        "raw": "AAH/",
        "j": {"k": [1, None]},
        "a": [1, 2],
        "n": {"x": 5, "y": "z"},
    },
    {"id": 2},
    {
        "id": 3,
        "b": False,
        "v": -0.1,
        "d": "-0.05",
        "s": "",
        "day": "1969-12-31",
        "at": "1999-12-31T23:59:59.999Z",
    },
]


@dataclass(frozen=True)
class Door:
    """Where they are, and what is there. port: PostgreSQL's. handle: of a query over all types."""

    broker: Broker
    port: int
    flight_port: int
    handle: str

    def dsn(self, token: str | None = TOKEN, **options: object) -> str:
        given = {"host": "127.0.0.1", "port": self.port, "user": "somebody", "dbname": "tureen"} | options
        if token is not None:
            given["password"] = token
        return " ".join(f"{name}='{value}'" for name, value in given.items())

    def connect(self, token: str | None = TOKEN, **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn(token), autocommit=True, connect_timeout=20, **options)


@contextlib.contextmanager
def opened_doors(kafka: str, directory: Path, registry_url: str) -> Iterator[Door]:
    """The broker while it runs. directory: of its data."""
    settings = {
        "POSTGRES_PORT": 0,
        "FLIGHT_PORT": 0,
        "HTTP_TOKEN": TOKEN,
        "HTTP_READ_TOKEN": READ_TOKEN,
        "SCHEMA_REGISTRY_URL": registry_url,
    }
    with broker(kafka, directory, f"t{uuid.uuid4().hex[:12]}", **settings) as one:
        topic, orders = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("everything", "orders"))
        told = one.http.get("/status", headers={"Authorization": f"Bearer {TOKEN}"}).json()["doors"]
        ports = {door["protocol"]: int(door["port"]) for door in told}
        port, flight_port = ports["postgresql"], ports["flight-sql"]
        opened = Door(one, port, flight_port, "")
        notices: list[str] = []
        with opened.connect() as connection:
            connection.add_notice_handler(lambda told: notices.append(told.message_primary or ""))
            connection.execute(f"CREATE STREAM everything ({COLUMNS}) WITH (topic = '{topic}')")
            connection.execute(
                "CREATE TABLE orders (id BIGINT, customer STRING, total DECIMAL(10, 2), PRIMARY KEY (id)) "
                f"WITH (topic = '{orders}')"
            )
            connection.execute("CREATE VIEW large AS SELECT id, total FROM orders WHERE total > 100")
            connection.execute("CREATE QUERY all_types AS SELECT * FROM everything")
            connection.execute(
                "CREATE QUERY per_customer AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer"
            )
            connection.execute(
                "INSERT INTO orders VALUES (1, 'ann', 20.50), (2, 'bob', 300), (3, 'ann', 150.25)"
            )
            one.send(topic, RECORDS)

            def is_read() -> bool:
                rows = connection.execute("SELECT * FROM all_types").fetchall()
                kept = connection.execute("SELECT * FROM per_customer").fetchall()
                return len(rows) == len(RECORDS) and len(kept) == 2

            wait_until(is_read, 120, "all is read")
        handle = next(told for told in notices if told.startswith("handle: ")).removeprefix("handle: ")
        yield Door(one, port, flight_port, handle)


@pytest.fixture(scope="package")
def door(
    kafka: str, tmp_path_factory: pytest.TempPathFactory, schema_registry: TestRegistry
) -> Iterator[Door]:
    """One for all tests of a folder that do not stop it."""
    with opened_doors(kafka, tmp_path_factory.mktemp("door") / "data", schema_registry.url) as opened:
        yield opened
