"""examples/debezium_and_avro, run as it is: a Debezium table and an Avro stream joined, asked by doors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.broker.doors import TOKEN, Door
from tests.kafka import wait_until
from tests.registry import TestRegistry
from tureen.commands.sql import sql

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLDER = EXAMPLES / "debezium_and_avro"


def expected() -> list[tuple[str, int, str]]:
    """The answer in plain Python: by city, of orders of customers that are still there."""
    cities = ["Basel", "Bern", "Zug"]
    lives = {number: cities[number % 3] for number in range(1, 9)} | {4: "Zug"}
    found: dict[str, list[int]] = {}
    for number in range(300):
        city = lives.get(1 + number % 9)
        if city is not None and number % 4:
            found.setdefault(city, []).append(25 * (100 + number % 50))
    return [(city, len(all_), f"{sum(all_) / 100:.2f}") for city, all_ in sorted(found.items())]


def test_the_shop(door: Door, schema_registry: TestRegistry) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "send.py")],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TUREEN_KAFKA__BOOTSTRAP_SERVERS": door.broker.bootstrap,
            "TUREEN_SCHEMA_REGISTRY_URL": schema_registry.url,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout == "12 events in shop.public.customers, 300 orders in shop.orders\n", done.stderr
    text = str(FOLDER / "shop.sql")
    made = CliRunner().invoke(sql, ["-f", text, "--url", door.broker.url, "--token", TOKEN])
    assert made.exit_code == 0, made.output
    for line in ("since DATE", "total DECIMAL(10, 2)", "delivery_express BOOLEAN PATH '$.delivery.express'"):
        assert line in made.output
    with door.connect() as connection:

        def rows() -> list[tuple[str, int, str]]:
            found = connection.execute("SELECT city, orders, total FROM shop_cities ORDER BY city").fetchall()
            return [(city, count, str(total)) for city, count, total in found]

        wait_until(lambda: rows() == expected(), 60, "the answer over PostgreSQL's protocol")
        told: list[str] = []
        connection.add_notice_handler(lambda one: told.append(one.message_primary or ""))
        connection.execute("CREATE STREAM shop_again FROM TOPIC 'shop.orders'")
        assert any(one.startswith("it means: CREATE STREAM shop_again (") for one in told)
        connection.execute("DROP STREAM shop_again")
    if shutil.which("psql") is not None or os.environ.get("CI") == "true":
        asked = ["psql", "-X", "-A", "-t", "-d", door.dsn(), "-c", "SELECT * FROM shop_cities ORDER BY city"]
        shown = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
        assert [tuple(line.split("|")) for line in shown.splitlines()] == [
            (city, str(count), total) for city, count, total in expected()
        ]
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    (handle,) = re.findall(r"^[a-z2-7]{26,}$", made.output, re.MULTILINE)
    answer: dict[str, Any] = door.broker.http.get(f"/queries/{handle}/snapshot", headers=allowed).json()
    assert sorted(map(tuple, answer["rows"])) == expected(), answer
    metrics = door.broker.http.get("/metrics", headers=allowed).text
    board = json.loads((EXAMPLES / "grafana" / "board.json").read_text())
    drawn = {
        name
        for panel in board["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"\btureen_\w+", target.get("expr", ""))
    }
    assert len(drawn) > 20
    known = set(re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE))
    unknown = {
        one
        for one in drawn
        if re.sub("_(bucket|sum|count|total)$", "", one) not in known and one not in known
    }
    assert not unknown
    assert re.search(r'tureen_\w+\{[^}]*"shop_orders"[^}]*\} 300', metrics)
    with door.connect() as connection:
        for gone in ("QUERY shop_cities", "STREAM shop_orders", "TABLE shop_customers"):
            connection.execute(f"DROP {gone}")
